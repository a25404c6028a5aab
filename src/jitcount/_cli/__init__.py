"""The command ``jitcount``: a module for each verb, which `arguments` collects."""

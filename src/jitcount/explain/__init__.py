"""Why it compiled: what differs from the nearest earlier program, and what to do about it.

`history` finds the nearest program, `differences` names what differs, `cause` says it in words and
`advice` says what to do. `explaining` puts these between what is heard and whoever wants to know.
"""

// Package scratch makes databases to be thrown away: a schema, database or key prefix of its own on a server there is, or a
// private server started from installed programs on a free port, to be stopped, killed, frozen and started again.
//
// Tests (through package testenv) and the soak use it. Nothing here touches what it has not created: names begin with dct_ and
// the time, so that what a killed process left behind can be told by its age and is dropped by a later one, a day after.
package scratch

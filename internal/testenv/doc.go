// Package testenv gives tests real servers and data, and sees to it that nothing is skipped silently.
//
// A server is looked for in this order: the variable ([VarPostgres], [VarMySQL], [VarRedis]), the standard local port, a private
// one started from installed programs on a free port, which ends with the test process. Where none is found the test is skipped
// with a message that names the variable, or fails when [VarRequire] lists the word.
//
// [Browser] finds a Chromium in the same way; none is started here.
//
// Each test gets a schema, database or key prefix of its own, dropped at its end. What a killed test process left behind is
// dropped by a later one, a day after.
//
// [PrivatePostgres], [PrivateMariaDB] and [PrivateRedis] always start a server of the test's own, to be stopped, killed, frozen
// and started again.
package testenv

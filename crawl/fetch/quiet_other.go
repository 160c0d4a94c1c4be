//go:build !unix

package fetch

// quiet is known on Unix only; elsewhere net/http's reader must notice.
func (c *rawConn) quiet() bool { return true }

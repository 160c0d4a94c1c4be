//go:build !unix

package sqldb

import "net"

// alive does not know here.
func alive(net.Conn) (ok, known bool) { return false, false }

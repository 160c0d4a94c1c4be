//go:build !unix

package sqldb

import "os"

// inode names a file whatever its path becomes; where the system has no such thing nothing does.
func inode(os.FileInfo) string { return "" }

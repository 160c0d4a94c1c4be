//go:build unix

package sqldb

import (
	"fmt"
	"os"
	"syscall"
)

// inode names a file whatever its path becomes.
func inode(fi os.FileInfo) string {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%d.%d", st.Dev, st.Ino)
	}
	return ""
}

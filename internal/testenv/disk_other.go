//go:build unix && !linux

package testenv

import "testing"

// SmallDisk skips: it needs Linux.
func SmallDisk(t testing.TB, _ int64) string {
	t.Helper()
	if Required("mount") {
		t.Fatalf("mount is required by %s, and needs Linux", VarRequire)
	}
	t.Skip("small disks for tests need Linux")
	return ""
}

// ReadOnly is for folders of SmallDisk, which there are none of.
func ReadOnly(t testing.TB, _ string) { t.Helper() }

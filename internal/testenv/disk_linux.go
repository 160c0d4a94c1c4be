package testenv

import (
	"fmt"
	"syscall"
	"testing"
)

// kindMount is the word of VarRequire for tests that mount file systems.
const kindMount = "mount"

// SmallDisk returns an empty folder on a file system of its own with room for about size bytes, or skips: only root may mount.
func SmallDisk(t testing.TB, size int64) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("deepcrawl-test", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		skipMount(t, err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return dir
}

// ReadOnly makes the file system of a folder from SmallDisk read-only, for root too.
func ReadOnly(t testing.TB, dir string) {
	t.Helper()
	if err := syscall.Mount("deepcrawl-test", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatalf("make %s read-only: %v", dir, err)
	}
}

func skipMount(t testing.TB, err error) {
	t.Helper()
	if Required(kindMount) {
		t.Fatalf("%s is required by %s: %v; run as root", kindMount, VarRequire, err)
	}
	t.Skipf("cannot mount a small disk: %v; run as root to run this test", err)
}

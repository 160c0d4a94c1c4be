package main

import (
	"fmt"
	"path/filepath"
	"syscall"

	"deepcrawl/internal/config"
)

// Work pauses where less is free than the smaller of the two: results under way must still find room, and so must the
// write-ahead log while it is copied into the file.
const (
	leastFree  = 200_000_000 // bytes
	leastShare = 50          // a fiftieth of the disk: 2 %
	// Of a disk smaller than this a fiftieth is less than a batch of results takes: there the database finds out.
	smallestDisk = 64_000_000
)

// mayStore is crawl.Config.MayStore for the disk of an embedded database. A server's disk cannot be seen from here: there its own
// refusals say that it is full.
func mayStore(cfg *config.Config) func() error {
	path, ok := sqliteFile(cfg.DB)
	if !ok {
		return nil
	}
	dir := filepath.Dir(path)
	return func() error {
		var st syscall.Statfs_t
		if err := syscall.Statfs(dir, &st); err != nil {
			return nil // the database itself will say what is wrong
		}
		size, free := uint64(st.Bsize)*st.Blocks, uint64(st.Bsize)*st.Bavail
		if least := min(leastFree, size/leastShare); size >= smallestDisk && free < least {
			return fmt.Errorf("disk: %s free of %s where %s is; work goes on at %s", diskSize(free), diskSize(size), filepath.Base(path), diskSize(least))
		}
		return nil
	}
}

func diskSize(n uint64) string { return size(int64(min(n, 1<<62))) }

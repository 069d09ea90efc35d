//go:build unix

package server

import "golang.org/x/sys/unix"

// freeBytes is the space that an ordinary user can still fill in dir; nil when unknown.
func freeBytes(dir string) *int64 {
	var st unix.Statfs_t
	if dir == "" || unix.Statfs(dir, &st) != nil {
		return nil
	}
	free := int64(st.Bavail) * int64(st.Bsize) //nolint:unconvert // the types differ between systems
	return &free
}

// openFiles is how many files this process may have open at a time.
func openFiles() uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 2 * maxConnections
	}
	return uint64(limit.Cur) //nolint:unconvert // the types differ between systems
}

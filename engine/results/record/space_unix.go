//go:build unix

package record

import "golang.org/x/sys/unix"

// Space returns what an ordinary user can still fill on the file system of dir,
// and its size; ok is false when that is unknown.
func Space(dir string) (free, size int64, ok bool) {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return 0, 0, false
	}
	block := int64(st.Bsize) //nolint:unconvert // the types differ between systems
	return int64(st.Bavail) * block, int64(st.Blocks) * block, true
}

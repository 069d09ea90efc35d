//go:build unix

package files

import (
	"io/fs"
	"os"
	"syscall"
)

// hasOneLink reports whether a file has this one name only.
func hasOneLink(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && s.Nlink == 1
}

// copyOwnership gives f the owner and the mode of another file.
func copyOwnership(f *os.File, old fs.FileInfo) error {
	now, err := f.Stat()
	if err != nil {
		return err
	}
	was, ok := old.Sys().(*syscall.Stat_t)
	is, same := now.Sys().(*syscall.Stat_t)
	if ok && same && (was.Uid != is.Uid || was.Gid != is.Gid) {
		if err := f.Chown(int(was.Uid), int(was.Gid)); err != nil {
			return err
		}
	}
	return f.Chmod(old.Mode().Perm() | old.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky))
}

//go:build unix

package files

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// leftOver fails when a draft was left in dir.
func leftOver(t *testing.T, dir string) {
	t.Helper()
	drafts, err := filepath.Glob(filepath.Join(dir, ".loadstone-*"))
	if err != nil || len(drafts) > 0 {
		t.Errorf("left over: %v %v", drafts, err)
	}
}

func TestAFileKeepsItsModeItsOwnerAndItsOtherNames(t *testing.T) {
	dir := t.TempDir()
	for _, mode := range []fs.FileMode{0o600, 0o664, 0o755} {
		path := filepath.Join(dir, "mode")
		if err := errors.Join(os.WriteFile(path, []byte("a longer text that was there"), 0o600),
			os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(Check(path), Write(path, text("new"))); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != mode {
			t.Errorf("mode %v became %v: %v", mode, info.Mode(), err)
		}
		if got := read(t, path); got != "new" {
			t.Errorf("it holds %q", got)
		}
	}
	path, other := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	if err := errors.Join(os.WriteFile(path, []byte("old"), 0o600), os.Link(path, other),
		Write(path, text("new"))); err != nil {
		t.Fatal(err)
	}
	if got := read(t, other); got != "new" {
		t.Errorf("the other name holds %q", got)
	}
	if os.Geteuid() == 0 {
		owned := filepath.Join(dir, "owned")
		if err := errors.Join(os.WriteFile(owned, nil, 0o640), os.Chown(owned, 4242, 4243),
			Write(owned, text("new"))); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(owned)
		if err != nil {
			t.Fatal(err)
		}
		if s := info.Sys().(*syscall.Stat_t); s.Uid != 4242 || s.Gid != 4243 || info.Mode() != 0o640 {
			t.Errorf("it belongs to %d:%d with %v", s.Uid, s.Gid, info.Mode())
		}
	}
	leftOver(t, dir)
}

func TestALinkKeepsPointingWhereItDid(t *testing.T) {
	dir := t.TempDir()
	to, link := filepath.Join(dir, "to"), filepath.Join(dir, "link")
	if err := os.Symlink("to", link); err != nil { // to what is not there yet
		t.Fatal(err)
	}
	for _, s := range []string{"first", "second"} {
		if err := errors.Join(Check(link), Write(link, text(s))); err != nil {
			t.Fatal(err)
		}
		if where, err := os.Readlink(link); err != nil || where != "to" {
			t.Fatalf("the link is gone: %q %v", where, err)
		}
		if got := read(t, to); got != s {
			t.Errorf("it holds %q, want %q", got, s)
		}
	}
	leftOver(t, dir)
}

func TestAFIFOGetsTheText(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	if err := errors.Join(syscall.Mkfifo(path, 0o600), Check(path)); err != nil {
		t.Fatal(err)
	}
	got := make(chan string)
	go func() {
		b, _ := os.ReadFile(path)
		got <- string(b)
	}()
	if err := Write(path, text("through it")); err != nil {
		t.Fatal(err)
	}
	if s := <-got; s != "through it" {
		t.Errorf("the reader got %q", s)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		t.Errorf("it is no FIFO any more: %v %v", info.Mode(), err)
	}
}

// TestADeviceStaysADevice uses a device of its own: one of the system would be lost if this failed.
func TestADeviceStaysADevice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "full")
	if err := syscall.Mknod(path, syscall.S_IFCHR|0o666, 1<<8|7); err != nil {
		t.Skipf("a device cannot be made: %v", err)
	}
	if f, err := os.OpenFile(path, os.O_WRONLY, 0); err != nil {
		t.Skipf("devices cannot be used in the temporary folder: %v", err)
	} else {
		_ = f.Close()
	}
	if err := Check(path); err != nil {
		t.Error(err)
	}
	if err := Write(path, text("x")); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("a full device took it: %v", err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode()&fs.ModeCharDevice == 0 {
		t.Errorf("it is no device any more: %v %v", info, err)
	}
}

func TestWhatCannotBeWrittenIsSaidBefore(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, words := range map[string]string{
		dir:                                "is a folder",
		filepath.Join(dir, "none", "s"):    "does not exist",
		filepath.Join(file, "below"):       "not a directory",
		"/proc/loadstone-cannot-make-this": "cannot be written",
	} {
		if err := Check(path); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, want %q", path, err, words)
		}
	}
	if err := Write(file, func(io.Writer) error { return errors.New("broken") }); err == nil {
		t.Error("a text that could not be made was written")
	}
	leftOver(t, dir)
}

func TestANewFileHasTheModeOfTheUmask(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o027))
	path := filepath.Join(t.TempDir(), "new")
	if err := errors.Join(Check(path), Write(path, text("x"))); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o640 {
		t.Errorf("mode %v: %v", info.Mode(), err)
	}
}

func TestStandardOutputUnderAnotherName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "redirected")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for name, want := range map[string]bool{"-": true, "/dev/stdout": true, path: true, path + "2": false} {
		if got := IsStdout(name, f); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if IsStdout(os.DevNull, null) {
		t.Error("what goes nowhere need not go there alone")
	}
}

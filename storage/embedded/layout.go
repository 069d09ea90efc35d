package embedded

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/loadstone-db/loadstone/engine"
)

// maxSocketDir is the longest socket folder, in bytes: sun_path holds 107
// bytes and a terminator, of which "/.s.PGSQL.65535" takes 15.
const maxSocketDir = 92

// defaultPort is in the name of the socket where nothing listens on TCP.
const defaultPort = 5432

// layout is where a cluster's files are. All paths are absolute and free of symbolic links.
type layout struct {
	// data is the caller's folder; it holds the lock.
	data string
	// home holds the cluster, the log and, when its path is short enough, the socket.
	home    string
	cluster string
	log     string
	socket  string
	// password is that of the control store's roles; empty in throw-away clusters,
	// whose roles are told by the system's user.
	password string
	// port is in the name of the socket, and what listen says of TCP is on it.
	port   int
	listen *Listen
	// relocated is true when home is not data, because id cannot reach data.
	relocated bool
}

// locate makes the folders of a cluster and decides where they are.
func locate(dataDir string, id identity) (layout, error) {
	abs, err := filepath.Abs(dataDir)
	if err != nil {
		return layout{}, fmt.Errorf("resolving the data directory: %w", err)
	}
	if err := os.MkdirAll(abs, 0o755); err != nil {
		return layout{}, unusable(dataDir, err)
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return layout{}, unusable(dataDir, err)
	}
	p := layout{data: abs, home: abs, port: defaultPort}
	switch here := holdsCluster(abs); {
	case here && !id.reachable(abs):
		// A new, empty cluster elsewhere would look like lost data.
		return layout{}, &engine.Error{Code: engine.CodeUnavailable,
			Message: fmt.Sprintf("Postgres runs as user %s, who can no longer enter %s.", id.name, abs),
			Hint:    "Let everyone enter that folder and its parents (chmod o+x)."}
	case !here && !id.reachable(abs), !here && wasRelocated(abs, id):
		p.relocated = true
		if p.home, err = relocate(abs, id); err != nil {
			return layout{}, err
		}
	}
	p.cluster = filepath.Join(p.home, "postgres")
	p.log = filepath.Join(p.home, "postgres.log")
	p.socket = filepath.Join(p.home, "run")
	if len(p.socket) > maxSocketDir {
		p.socket, err = shortFolder(p.home, id)
	} else {
		err = makePrivate(p.socket, id)
	}
	if err != nil {
		return layout{}, unusable(p.socket, err)
	}
	return p, nil
}

// fingerprint names a folder in few characters.
func fingerprint(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(sum[:6])
}

// holdsCluster reports whether a whole cluster lies in home.
func holdsCluster(home string) bool {
	_, err := os.Stat(filepath.Join(home, "postgres", "PG_VERSION"))
	return err == nil
}

// fallbackDirs are where clusters go whose data directory cannot be reached.
func fallbackDirs() []string {
	return []string{"/var/lib/loadstone-postgres", filepath.Join(os.TempDir(), "loadstone-postgres")}
}

// wasRelocated reports whether an earlier start, when the data directory could
// not be reached, put its cluster elsewhere.
func wasRelocated(data string, id identity) bool {
	if !id.switched {
		return false
	}
	for _, parent := range fallbackDirs() {
		home := filepath.Join(parent, fingerprint(data))
		if holdsCluster(home) && ownedBy(home, 0, id.uid) == nil {
			return true
		}
	}
	return false
}

// relocate makes a folder for the cluster of a data directory that id cannot reach.
func relocate(data string, id identity) (string, error) {
	var last error
	for _, parent := range fallbackDirs() {
		if last = os.MkdirAll(parent, 0o755); last != nil {
			continue
		}
		home := filepath.Join(parent, fingerprint(data))
		if last = os.Mkdir(home, 0o755); last != nil && !errors.Is(last, fs.ErrExist) {
			continue
		}
		// A folder below /tmp could be someone else's trap.
		for _, dir := range []string{parent, home} {
			if last = ownedBy(dir, 0, id.uid); last != nil {
				break
			}
			// A strict umask must not shut Postgres out of its own folder.
			if last = os.Chmod(dir, 0o755); last != nil {
				break
			}
		}
		if last == nil && !id.reachable(home) {
			last = fmt.Errorf("user %s cannot reach %s", id.name, home)
		}
		if last == nil {
			return filepath.EvalSymlinks(home)
		}
	}
	return "", &engine.Error{Code: engine.CodeUnavailable, Cause: last,
		Message: fmt.Sprintf("Postgres runs as user %s, who can reach neither %s nor another folder for its files: %v.",
			id.name, data, last),
		Hint: "Choose a data directory whose parents everyone may enter (--data-dir), or run Loadstone as an ordinary user."}
}

// shortFolder returns a private socket folder for a home whose path is too long.
func shortFolder(home string, id identity) (string, error) {
	var last error
	name := "loadstone-" + strconv.Itoa(os.Geteuid()) + "-" + fingerprint(home)
	for _, parent := range []string{os.Getenv("XDG_RUNTIME_DIR"), os.TempDir(), "/tmp"} {
		if parent == "" || id.switched && !id.reachable(parent) {
			continue
		}
		dir := filepath.Join(parent, name)
		if len(dir) > maxSocketDir {
			last = fmt.Errorf("%s is longer than %d bytes", dir, maxSocketDir)
			continue
		}
		if last = makePrivate(dir, id); last == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("making a short folder for the socket: %w", last)
}

// makePrivate makes a folder of mode 0700 that belongs to id, and refuses one that
// is not a folder or belongs to another user.
func makePrivate(dir string, id identity) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := ownedBy(dir, os.Geteuid(), id.uid); err != nil {
		return err
	}
	if err := id.chown(dir); err != nil {
		return err
	}
	return os.Chmod(dir, 0o700)
}

// ownedBy checks that dir is a real folder of one of the users.
func ownedBy(dir string, uids ...int) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", dir)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		for _, uid := range uids {
			if int(st.Uid) == uid {
				return nil
			}
		}
		return fmt.Errorf("%s belongs to another user (%d)", dir, st.Uid)
	}
	return nil
}

// unusable turns a file-system error on the data directory into a sentence.
func unusable(dir string, err error) error {
	e := &engine.Error{Code: engine.CodeUnavailable, Cause: err}
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		e.Message = fmt.Sprintf("The disk that holds %s is full.", dir)
		e.Hint = "Free some space (at least 200 MB), or choose another place with --data-dir."
	case errors.Is(err, syscall.EROFS):
		e.Message = fmt.Sprintf("%s is on a read-only file system.", dir)
		e.Hint = "Choose a data directory that can be written, with --data-dir."
	case errors.Is(err, fs.ErrPermission):
		e.Message = fmt.Sprintf("User id %d may not write to %s.", os.Geteuid(), dir)
		e.Hint = "Make the folder writable for that user, or choose another with --data-dir."
	default:
		e.Message = fmt.Sprintf("The data directory %s cannot be used: %v.", dir, err)
		e.Hint = "Choose another with --data-dir."
	}
	return e
}

// Lock takes a data directory without a cluster for this process, until the file
// is closed. A directory that another process uses is engine.CodeConflict.
func Lock(dataDir string) (*os.File, error) {
	abs, err := filepath.Abs(dataDir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return nil, unusable(dataDir, err)
	}
	return layout{data: abs}.lock()
}

// lock takes the data directory for this process. The lock ends with the process.
func (p layout) lock() (*os.File, error) {
	path := filepath.Join(p.data, "postgres.lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, unusable(p.data, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, _ := os.ReadFile(path)
		f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, unusable(p.data, err)
		}
		who := "Another Loadstone"
		if pid := strings.TrimSpace(string(holder)); pid != "" {
			who += " (process " + pid + ")"
		}
		return nil, &engine.Error{Code: engine.CodeConflict, Cause: err,
			Message: fmt.Sprintf("%s is using the data directory %s.", who, p.data),
			Hint:    "Stop it first, or choose another data directory with --data-dir."}
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil {
		f.Close()
		return nil, unusable(p.data, err)
	}
	return f, nil
}

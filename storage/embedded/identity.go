package embedded

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/loadstone-db/loadstone/engine"
)

// identity is the operating-system user that runs Postgres.
type identity struct {
	uid, gid int
	// name is the user's name as Postgres will look it up.
	name string
	// switched is true when a root caller gives its privileges away.
	switched bool
	// preload makes a user without a passwd entry known (nss_wrapper).
	preload string
	// namespace maps the user onto name's uid (inside) within a user namespace.
	namespace   bool
	inNamespace int
}

// identify decides who runs Postgres.
func identify() (identity, error) {
	uid := os.Geteuid()
	if uid == 0 {
		for _, name := range []string{"postgres", "nobody"} {
			u, err := user.Lookup(name)
			if err != nil {
				continue
			}
			id := identity{name: name, switched: true}
			if id.uid, err = strconv.Atoi(u.Uid); err != nil {
				continue
			}
			if id.gid, err = strconv.Atoi(u.Gid); err != nil || id.uid == 0 {
				continue
			}
			return id, nil
		}
		return identity{}, &engine.Error{Code: engine.CodeUnavailable,
			Message: "Postgres refuses to run as root, and this machine has neither a user postgres nor a user nobody.",
			Hint:    "Run Loadstone as an ordinary user, or add one: useradd --system postgres"}
	}
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return identity{uid: uid, gid: os.Getegid(), name: u.Username}, nil
	}
	return anonymous(identity{uid: uid, gid: os.Getegid()})
}

// anonymous finds a way for a uid that has no passwd entry, as containers
// with an arbitrary uid have it: initdb and peer authentication need a name.
func anonymous(id identity) (identity, error) {
	for _, pattern := range []string{"/usr/lib/*/libnss_wrapper.so", "/usr/lib/libnss_wrapper.so",
		"/usr/lib64/libnss_wrapper.so"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			id.preload, id.name = found[0], "loadstone"
			return id, nil
		}
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		inside, err := strconv.Atoi(u.Uid)
		if err != nil {
			continue
		}
		mapped := id
		mapped.name, mapped.namespace, mapped.inNamespace = name, true, inside
		if namespaceWorks(mapped) {
			return mapped, nil
		}
	}
	return identity{}, &engine.Error{Code: engine.CodeUnavailable,
		Message: fmt.Sprintf("User id %d has no entry in /etc/passwd, and Postgres needs a user with a name.", id.uid),
		Hint:    "Run as a user that has one, install libnss-wrapper, or use an external Postgres with --database-url."}
}

// reachable reports whether the identity may enter every folder on the way to
// dir, which must exist.
func (id identity) reachable(dir string) bool {
	if !id.switched {
		return true
	}
	for {
		info, err := os.Stat(dir)
		if err != nil {
			return false
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return false
		}
		need := os.FileMode(0o001)
		switch {
		case int(st.Uid) == id.uid:
			need = 0o100
		case int(st.Gid) == id.gid:
			need = 0o010
		}
		if info.Mode().Perm()&need == 0 {
			return false
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return true
		}
		dir = parent
	}
}

// chown makes the identity the owner of a file or folder.
func (id identity) chown(path string) error {
	if !id.switched {
		return nil
	}
	return os.Lchown(path, id.uid, id.gid)
}

// peers lists the system users that the socket admits.
func (id identity) peers() []string {
	names := []string{id.name}
	if id.switched {
		names = append(names, "root")
	}
	return names
}

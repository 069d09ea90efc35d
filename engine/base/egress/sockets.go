package egress

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
)

// socketPrefix marks unix sockets in an allow-list.
const socketPrefix = "unix:"

// maxSocketPath is how long a socket's path may be, see unix(7).
const maxSocketPath = 107

// CheckSocket judges the path of a unix socket, and returns what is to be dialled: the file that the path leads to, so
// that a link that changes meanwhile leads nowhere. Allowed is a file that is listed, or lies in a listed folder or
// below it; links and .. are followed before that is decided. Abstract sockets (@name) have no file, and are refused.
func (p *Policy) CheckSocket(path string) (file string, err error) {
	if p == nil {
		return path, nil
	}
	refused := &engine.Error{Code: engine.CodeTarget, Cause: ErrRefused,
		Message: fmt.Sprintf("The unix socket %s is not among what this server may reach.", path),
		Hint: "Give the host and the port of the database. Whoever runs the server can add a socket or its folder to " +
			Flag + " (LOADSTONE_ALLOW_TARGETS): unix:" + filepath.Dir(path) + "."}
	if !filepath.IsAbs(path) || strings.IndexByte(path, 0) >= 0 {
		refused.Hint = "Write the path of the socket from the root, or a host and a port."
		return "", refused
	}
	if len(p.sockets) == 0 {
		return "", refused
	}
	// Where there is no file yet, its folder decides; there is nothing to speak with before it is there.
	file, err = filepath.EvalSymlinks(path)
	if err != nil {
		folder, gone := filepath.EvalSymlinks(filepath.Dir(path))
		if gone != nil {
			return "", refused
		}
		file = filepath.Join(folder, filepath.Base(path))
	}
	for _, listed := range p.sockets {
		if real, err := filepath.EvalSymlinks(listed); err == nil {
			listed = real
		}
		if file == listed || strings.HasPrefix(file, strings.TrimSuffix(listed, "/")+"/") {
			if len(file) > maxSocketPath {
				return path, nil
			}
			return file, nil
		}
	}
	return "", refused
}

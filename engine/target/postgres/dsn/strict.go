package dsn

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine"
)

// Strict is how a reader treats connection strings that come from others than
// the person who runs the process: they name no files of this machine, nothing is
// added to them from the environment or the home folder, and they do not lead to
// the server's own Postgres.
type Strict struct {
	// Socket is the folder of the socket of the server's own Postgres, empty for none.
	Socket string
	// Open are its databases that may be connected to, each as the user of its name.
	Open []string
}

func refused(message, hint string) error {
	return &engine.Error{Code: engine.CodeTarget, Message: message, Hint: hint}
}

// checkSettings refuses parameters that reach into this machine.
func (s *Strict) checkSettings(m map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		// In capitals it would be a parameter that Postgres does not know; nobody means that.
		key, value := strings.ToLower(name), m[name]
		if !slices.Contains(fileKeys, key) {
			continue
		}
		switch {
		case value == "", slices.Contains(tlsKeys, key) && isInlinePEM(value), key == "sslrootcert" && value == "system":
		case slices.Contains(tlsKeys, key):
			return &engine.Error{Code: engine.CodeTarget, Cause: errNoFiles,
				Message: fmt.Sprintf("The parameter %s names a file of the machine that Loadstone runs on, which a connection "+
					"of this server may not.", key),
				Hint: "Paste the PEM text itself as its value (in a URL: percent-encoded), or sslrootcert=system for the " +
					"authorities that the machine trusts."}
		default:
			return &engine.Error{Code: engine.CodeTarget, Cause: errNoFiles,
				Message: fmt.Sprintf("The parameter %s reads a file of the machine that Loadstone runs on, which a connection "+
					"of this server may not.", key),
				Hint: "Write host, user and password into the connection itself."}
		}
	}
	if m["hostaddr"] != "" {
		return refused("The parameter hostaddr is not allowed in a connection of this server.", "Write the address as host.")
	}
	return nil
}

const ownHint = "Use a database of your own. The built-in connection playground is the only one that leads to this " +
	"server's own Postgres."

// check refuses the server's own Postgres, under whatever name.
func (s *Strict) check(c *pgx.ConnConfig) error {
	hosts := []string{c.Host}
	ports := []uint16{c.Port}
	for _, f := range c.Fallbacks {
		hosts, ports = append(hosts, f.Host), append(ports, f.Port)
	}
	for i, host := range hosts {
		if strings.HasPrefix(host, "@") || strings.Contains(host, "/") && !strings.HasPrefix(host, "/") {
			return refused(fmt.Sprintf("The host %q is neither a host name nor the absolute path of a socket's folder.", host),
				"Write the folder from its root, or a host name.")
		}
		network, address := pgconn.NetworkAddress(host, ports[i])
		if network == "unix" && s.owns(address) && !s.open(c.Database, c.User) {
			return refused("This connection leads to Loadstone's own Postgres, which is not a target.", ownHint)
		}
	}
	dial := c.DialFunc
	c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		// Looked at again: what a path leads to may have changed since.
		if network == "unix" && s.owns(address) && !s.open(c.Database, c.User) {
			return nil, refused("This connection leads to Loadstone's own Postgres, which is not a target.", ownHint)
		}
		return dial(ctx, network, address)
	}
	return nil
}

func (s *Strict) open(database, user string) bool {
	return database == user && slices.Contains(s.Open, database)
}

// owns reports whether a socket's path leads into the folder of the server's own
// Postgres, or to its socket itself; links of every kind are followed.
func (s *Strict) owns(address string) bool {
	if s.Socket == "" {
		return false
	}
	folder := filepath.Dir(address)
	if filepath.Clean(folder) == filepath.Clean(s.Socket) || same(folder, s.Socket) {
		return true
	}
	if real, err := filepath.EvalSymlinks(address); err == nil && same(filepath.Dir(real), s.Socket) {
		return true
	}
	mine, err := os.ReadDir(s.Socket)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(mine, func(e os.DirEntry) bool { return same(address, filepath.Join(s.Socket, e.Name())) })
}

func same(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

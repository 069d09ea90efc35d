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

	"github.com/loadstone-db/loadstone/engine"
)

func refused(message, hint string) error {
	return &engine.Error{Code: engine.CodeTarget, Message: message, Hint: hint}
}

// checkSettings refuses parameters that reach into this machine, and those that make another kind of session.
func checkSettings(m map[string]string) error {
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
	for name := range m {
		// Another kind of session, or another user than who was let in: neither tells where a connection has landed.
		if key := strings.ToLower(name); key == "replication" || key == sessionUser ||
			key == "options" && strings.Contains(optionNames.Replace(strings.ToLower(m[name])), sessionUser) {
			return refused(fmt.Sprintf("The parameter %s is not allowed in a connection of this server.", strings.Trim(
				strings.ToLower(name), spaces)), "Leave replication and session_authorization out, and connect as the user itself.")
		}
	}
	return nil
}

// sessionUser is the setting by which a superuser looks like another user.
const sessionUser = "session_authorization"

// optionNames has the options of a session written in one way.
var optionNames = strings.NewReplacer(`\`, "", "-", "_")

// check refuses the server's own Postgres, under whatever path.
func (r Reader) check(c *pgx.ConnConfig) error {
	hosts := []string{c.Host}
	for _, f := range c.Fallbacks {
		hosts = append(hosts, f.Host)
	}
	for _, host := range hosts {
		if strings.HasPrefix(host, "@") || strings.Contains(host, "/") && !strings.HasPrefix(host, "/") {
			return refused(fmt.Sprintf("The host %q is neither a host name nor the absolute path of a socket's folder.", host),
				"Write the folder from its root, or a host name.")
		}
	}
	for _, address := range sockets(c) {
		if r.isStranger(c, address) {
			return refused("This connection leads to Loadstone's own Postgres, which is not a target.", ownHint)
		}
	}
	dial := c.DialFunc
	c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		// Looked at again: what a path leads to may have changed since.
		if network == "unix" && r.isStranger(c, address) {
			return nil, refused("This connection leads to Loadstone's own Postgres, which is not a target.", ownHint)
		}
		return dial(ctx, network, address)
	}
	return nil
}

// isGuest reports whether a socket is that of the server's own Postgres, and the connection one to a database that is
// open there.
func (r Reader) isGuest(c *pgx.ConnConfig, address string) bool {
	own, is := r.ownerOf(address)
	return is && c.Database == c.User && slices.Contains(own.Guests, c.Database)
}

// isStranger reports whether a socket is that of the server's own Postgres, and the connection is not let in.
func (r Reader) isStranger(c *pgx.ConnConfig, address string) bool {
	own, is := r.ownerOf(address)
	return is && (c.Database != c.User || !slices.Contains(own.Guests, c.Database))
}

// ownerOf returns the Postgres of the server's own that a socket is of.
func (r Reader) ownerOf(address string) (own engine.OwnDatabase, is bool) {
	if r.Own == nil {
		return own, false
	}
	for _, own := range r.Own() {
		if own.Sealed && own.Socket != "" && ownsSocket(own.Socket, address) {
			return own, true
		}
	}
	return own, false
}

// ownsSocket reports whether a socket's path leads into a folder, or to a socket there; links of every kind are
// followed.
func ownsSocket(mine, address string) bool {
	folder := filepath.Dir(address)
	if filepath.Clean(folder) == filepath.Clean(mine) || same(folder, mine) {
		return true
	}
	if real, err := filepath.EvalSymlinks(address); err == nil && same(filepath.Dir(real), mine) {
		return true
	}
	entries, err := os.ReadDir(mine)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool { return same(address, filepath.Join(mine, e.Name())) })
}

func same(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

package dsn

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine/base/egress"
)

// dialWithPolicy has every connection dialled where the policy lets it. The driver resolves names by itself, and dials
// addresses: which name has led to one is kept, for lists that have names.
func (r Reader) dialWithPolicy(c *pgx.ConnConfig) {
	var names sync.Map // by address
	lookUp := c.LookupFunc
	c.LookupFunc = func(ctx context.Context, host string) ([]string, error) {
		all, err := lookUp(ctx, host)
		for _, address := range all {
			names.Store(address, host)
		}
		return all, err
	}
	plain := c.DialFunc
	c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if network == "unix" && r.isGuest(c, address) {
			return plain(ctx, network, address)
		}
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			host = ""
		}
		name, ok := names.Load(host)
		if known, isText := name.(string); ok && isText {
			host = known
		}
		return r.Egress.DialNamed(ctx, network, address, host)
	}
}

// checkHosts refuses hosts and addresses where nobody is spoken with, whatever a list says, where they are written.
// What names lead to is judged when it is dialled.
func (r Reader) checkHosts(dsn string, c *pgx.ConnConfig) error {
	s, err := readSettings(dsn)
	if err != nil {
		return explainDSN(err)
	}
	hosts := strings.Split(s.effective()["hostaddr"], ",")
	for _, f := range append([]*pgconn.FallbackConfig{{Host: c.Host}}, c.Fallbacks...) {
		hosts = append(hosts, f.Host)
	}
	for _, host := range hosts {
		if egress.IsForbiddenHost(host) {
			return r.Egress.Check(host, netip.AddrPort{}) //nolint:wrapcheck // it is user-facing
		}
	}
	return nil
}

// checkSockets refuses the sockets of a connection string before one is dialled.
func (r Reader) checkSockets(c *pgx.ConnConfig) error {
	for _, address := range sockets(c) {
		if r.isGuest(c, address) {
			continue
		}
		if _, err := r.Egress.CheckSocket(address); err != nil {
			return err //nolint:wrapcheck // it is user-facing
		}
	}
	return nil
}

// sockets are the paths of the unix sockets that a connection string leads to.
func sockets(c *pgx.ConnConfig) (paths []string) {
	for _, f := range append([]*pgconn.FallbackConfig{{Host: c.Host, Port: c.Port}}, c.Fallbacks...) {
		network, address := pgconn.NetworkAddress(f.Host, f.Port)
		if network == "unix" && !slices.Contains(paths, address) {
			paths = append(paths, address)
		}
	}
	return paths
}

package dsn

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os/user"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine"
)

// socketOptions are what a TCP connection is set to when it has been dialled.
type socketOptions struct {
	given       bool // keepAlive counts
	keepAlive   net.KeepAliveConfig
	userTimeout int // ms, 0 for the system's
}

// dial sets every connection as its parameters ask. It wraps what dials by then, and so sees every connection.
func (x *extras) dial(c *pgx.ConnConfig) {
	if x.balanced {
		lookUp := c.LookupFunc
		c.LookupFunc = func(ctx context.Context, host string) ([]string, error) {
			all, err := lookUp(ctx, host)
			rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			return all, err
		}
	}
	if !x.socket.given && x.socket.userTimeout == 0 && x.peer == "" {
		return
	}
	plain := c.DialFunc
	c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := plain(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if err := x.set(conn, address); err != nil {
			_ = conn.Close()
			return nil, err
		}
		return conn, nil
	}
}

func (x *extras) set(conn net.Conn, address string) error {
	switch c := conn.(type) {
	case *net.TCPConn:
		if x.socket.given {
			if err := c.SetKeepAliveConfig(x.socket.keepAlive); err != nil {
				return fmt.Errorf("setting keepalives: %w", err)
			}
		}
		if x.socket.userTimeout > 0 {
			return setUserTimeout(c, x.socket.userTimeout)
		}
	case *net.UnixConn:
		if x.peer != "" {
			return x.checkPeer(c, address)
		}
	}
	return nil
}

// checkPeer refuses a socket behind which another user's process answers than requirepeer names.
func (x *extras) checkPeer(c *net.UnixConn, address string) error {
	id, err := peerOf(c)
	if err != nil {
		return &engine.Error{Code: engine.CodeTarget, Cause: err,
			Message: "The parameter requirepeer cannot be honoured: this system does not tell who answers on a socket.",
			Hint:    "Leave requirepeer out."}
	}
	name := strconv.FormatUint(uint64(id), 10)
	if known, err := user.LookupId(name); err == nil {
		name = known.Username
	}
	if name == x.peer {
		return nil
	}
	return &engine.Error{
		Code: engine.CodeTarget,
		Message: fmt.Sprintf(
			"The server at the socket %s runs as user %q, and requirepeer asks for %q.",
			address,
			name,
			x.peer,
		),
		Hint: "Correct requirepeer, or find out who has made that socket.",
	}
}

// Config is what a connection string means.
type Config struct {
	*pgx.ConnConfig
	balanced bool
}

// Addresses are the hosts, with their ports, in the order in which they are written.
func (c Config) Addresses() (all []string) {
	for _, g := range hosts(c.ConnConfig) {
		_, address := pgconn.NetworkAddress(g[0].Host, g[0].Port)
		all = append(all, address)
	}
	return all
}

// Next returns the configuration for one connect: a copy, whose hosts are in random order where that is asked for
// (load_balance_hosts).
func (c Config) Next() *pgx.ConnConfig {
	next := c.Copy()
	if c.balanced {
		groups := hosts(next)
		rand.Shuffle(len(groups), func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
		var all []*pgconn.FallbackConfig
		for _, g := range groups {
			all = append(all, g...)
		}
		setAttempts(next, all)
	}
	return next
}

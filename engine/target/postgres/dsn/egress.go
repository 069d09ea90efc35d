package dsn

import (
	"context"
	"net"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine/base/egress"
)

// dialWithPolicy has every connection dialled where the policy lets it. The driver resolves names by itself, and dials
// addresses: which name has led to one is kept, for lists that have names.
func dialWithPolicy(c *pgx.ConnConfig, p *egress.Policy) {
	var names sync.Map // by address
	lookUp := c.LookupFunc
	c.LookupFunc = func(ctx context.Context, host string) ([]string, error) {
		all, err := lookUp(ctx, host)
		for _, address := range all {
			names.Store(address, host)
		}
		return all, err
	}
	c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			host = ""
		}
		name, ok := names.Load(host)
		if known, isText := name.(string); ok && isText {
			host = known
		}
		return p.DialNamed(ctx, network, address, host)
	}
}

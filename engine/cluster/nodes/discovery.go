// This part finds the addresses of nodes while a server runs: those of a name in DNS, such as a headless service of
// Kubernetes or a service of AWS Cloud Map, and those of the catalog. It finds addresses only; a node is who its
// certificate says, or its Hello, so that one with two addresses counts once.
//
// What cannot be looked up now is as it was: a name server that is away ends no load. An address that is gone is not
// dialled any more once its stream breaks, because a name that is not resolved for a moment, or leaves out a node that
// drains, says nothing about its load.

package nodes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// DiscoveryInterval is how often is looked.
const DiscoveryInterval = 3 * time.Second

// discoveryTimeout is how long one look may take.
const discoveryTimeout = 5 * time.Second

// AddressProvider is where addresses of nodes are found.
type AddressProvider interface {
	// String names the place, in logs.
	String() string
	// Addresses are host:port of the nodes that are there now.
	Addresses(ctx context.Context) ([]string, error)
	// Authoritative is true where an address that is gone was taken out by somebody: its stream ends at once.
	Authoritative() bool
}

// DiscoveryOptions say where is looked, and what is done with what is found.
type DiscoveryOptions struct {
	Providers []AddressProvider
	// Dial prepares the way to an address.
	Dial func(address string) (protocol.Dialer, error)
	// PollInterval is how often is looked; 0 is DiscoveryInterval.
	PollInterval time.Duration
	Log          zerolog.Logger
}

// Discovery implements Source.
type Discovery struct {
	opts DiscoveryOptions
	// found are the addresses of each place, as they were the last time it could be looked at.
	found [][]string
	// failure is the last error of each place, which is logged once.
	failure []string
	// active are the addresses that are dialled; refused those that cannot be.
	active, refused map[string]bool
}

// NewDiscovery prepares to look.
func NewDiscovery(o DiscoveryOptions) *Discovery {
	if o.PollInterval == 0 {
		o.PollInterval = DiscoveryInterval
	}
	return &Discovery{opts: o, found: make([][]string, len(o.Providers)), failure: make([]string, len(o.Providers)),
		active: map[string]bool{}, refused: map[string]bool{}}
}

// Watch implements Source. It is not called while Look is.
func (d *Discovery) Watch(ctx context.Context, w DialerSet) {
	ticker := time.NewTicker(d.opts.PollInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-w.Disconnected():
		}
		d.Discover(ctx, w)
	}
}

// Discover implements Source.
func (d *Discovery) Discover(ctx context.Context, w DialerSet) {
	limited, cancel := context.WithTimeout(ctx, discoveryTimeout)
	defer cancel()
	// All at once: one that does not answer takes no time from the others.
	all, failed := make([][]string, len(d.opts.Providers)), make([]error, len(d.opts.Providers))
	var looking sync.WaitGroup
	for i, p := range d.opts.Providers {
		looking.Go(func() { all[i], failed[i] = p.Addresses(limited) })
	}
	looking.Wait()
	if ctx.Err() != nil {
		return
	}
	certain := map[string]bool{} // what somebody has taken out
	for i, p := range d.opts.Providers {
		addresses, err := all[i], failed[i]
		d.logOnce(i, err)
		if err != nil {
			continue
		}
		if p.Authoritative() {
			for _, a := range d.found[i] {
				certain[a] = certain[a] || !slices.Contains(addresses, a)
			}
		}
		d.found[i] = addresses
	}
	there := map[string]bool{}
	for _, addresses := range d.found {
		for _, a := range addresses {
			there[a] = true
		}
	}
	for a := range there {
		d.add(w, a)
	}
	for a := range d.active {
		if there[a] {
			continue
		}
		delete(d.active, a)
		d.opts.Log.Info().Str("address", a).Msg("a node's address is gone")
		if certain[a] {
			w.Remove(a)
		} else {
			w.Retire(a)
		}
	}
}

func (d *Discovery) add(w DialerSet, address string) {
	err := w.Add(address, func() (protocol.Dialer, error) { return d.opts.Dial(address) })
	switch {
	case err != nil && !d.refused[address]:
		d.refused[address] = true
		d.opts.Log.Error().Err(err).Str("address", address).Msg("a node that was found cannot be dialled")
	case err == nil && !d.active[address]:
		d.active[address] = true
		delete(d.refused, address)
		d.opts.Log.Info().Str("address", address).Msg("a node's address was found")
	}
}

// logOnce logs what keeps a place from being looked at, once.
func (d *Discovery) logOnce(place int, err error) {
	name := d.opts.Providers[place].String()
	if err == nil {
		if d.failure[place] != "" {
			d.opts.Log.Info().Str("place", name).Msg("the discovery of nodes succeeds again")
		}
		d.failure[place] = ""
		return
	}
	if d.failure[place] == "" {
		d.opts.Log.Warn().Err(err).Str("place", name).Msg("the discovery of nodes failed; known nodes stay")
	}
	d.failure[place] = err.Error()
}

// AddressCatalog is the place where operators write addresses.
type AddressCatalog func(ctx context.Context) ([]string, error)

// String implements AddressProvider.
func (AddressCatalog) String() string { return "catalog" }

// Authoritative implements AddressProvider.
func (AddressCatalog) Authoritative() bool { return true }

// Addresses implements AddressProvider.
func (c AddressCatalog) Addresses(ctx context.Context) ([]string, error) { return c(ctx) }

// DNSScheme begins the name of a place in DNS.
const DNSScheme = "dns://"

// IsDNS reports whether a text names a place in DNS.
func IsDNS(text string) bool { return strings.HasPrefix(text, DNSScheme) }

// ErrDNSName says what a name in DNS looks like.
var ErrDNSName = fmt.Errorf("write dns:///name:port for addresses, dns:///_service._tcp.name for SRV records, " +
	"or dns://server:53/name:port to ask a name server")

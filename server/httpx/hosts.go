package httpx

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/net/idna"

	"github.com/loadstone-db/loadstone/engine"
)

// Hosts are the names by which the server may be asked for. A page of another site whose name is made to lead to this
// machine (DNS rebinding) asks by that name, and is refused; addresses cannot be rebound.
type Hosts struct {
	all bool
	// addresses lets every IP address pass, else those of loopback alone.
	addresses bool
	names     map[string]bool
	// suffixes are the ends of names, each with its dot.
	suffixes []string
}

// AnyHost lets every name pass.
var AnyHost = Hosts{all: true}

// NewHosts lets the names of loopback pass, the names given (a leading dot or *. means all names below), and all IP
// addresses where the server listens on more than loopback. "*" lets everything pass.
func NewHosts(names []string, beyondLoopback bool) (Hosts, error) {
	h := Hosts{addresses: beyondLoopback, names: map[string]bool{}}
	for _, given := range names {
		name := strings.ToLower(strings.TrimSpace(given))
		if name == "*" {
			return AnyHost, nil
		}
		below := strings.HasPrefix(name, "*.") || strings.HasPrefix(name, ".")
		name = strings.TrimPrefix(strings.TrimPrefix(name, "*"), ".")
		if ip, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil && !below {
			h.names[ip.Unmap().String()] = true
			continue
		}
		ascii, err := idna.Lookup.ToASCII(strings.TrimSuffix(name, "."))
		if err != nil || ascii == "" || strings.ContainsAny(ascii, ":/* ") {
			return h, engine.InvalidField("--allowed-hosts", fmt.Sprintf("%q is no name of a host", given),
				"write names without a port: bench.example.com, .example.com for all names below, or * for every name")
		}
		if below {
			h.suffixes = append(h.suffixes, "."+ascii)
			continue
		}
		h.names[ascii] = true
	}
	return h, nil
}

// hostOf is the host of host:port.
func hostOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}

// Loopback reports whether a host, which may have a port, is a name or an address of loopback.
func Loopback(host string) bool {
	name := strings.ToLower(strings.TrimSuffix(hostOf(host), "."))
	ip, err := netip.ParseAddr(name)
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || err == nil && ip.Unmap().IsLoopback()
}

// Allow reports whether the server may be asked for by the host of a request, which may have a port.
func (h Hosts) Allow(host string) bool {
	if h.all || host == "" { // a browser always names one
		return true
	}
	name := strings.ToLower(strings.TrimSuffix(hostOf(host), "."))
	if ip, err := netip.ParseAddr(name); err == nil {
		return h.addresses || Loopback(host) || h.names[ip.Unmap().String()]
	}
	return Loopback(host) || h.names[name] ||
		slices.ContainsFunc(h.suffixes, func(end string) bool { return strings.HasSuffix(name, end) })
}

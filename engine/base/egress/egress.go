// Package egress says which addresses this process may speak with on somebody else's word: databases under test, and
// systems that things are sent to. It looks at the address that is dialled, after names were resolved, so that a name
// that leads elsewhere a moment later leads nowhere; a redirect is dialled, and so looked at, like any other. A unix
// socket is judged by the file that its path leads to.
package egress

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// Policy is what may be reached on the word of users. The zero policy is every address but those that are always
// refused (of the link, and where clouds tell a machine its own keys), and no unix socket: who asks on a socket is
// taken for the user that this process runs as. A nil policy is Unrestricted.
type Policy struct {
	// rules are of TCP, and no rules let every address through that is not refused always. Sockets are a list of their
	// own: who lists one does not close TCP.
	rules []rule
	// sockets are files of unix sockets, and folders of some, as they were listed.
	sockets []string
}

// Unrestricted returns the policy for what whoever starts the process has named, by a flag or in the environment: no
// list is asked, and unix sockets are theirs to use. What is refused always is refused here too, whatever a name or a
// redirect leads to.
func Unrestricted() *Policy { return nil }

// rule allows a range of addresses or a name, on one port or, with 0, on all.
type rule struct {
	prefix netip.Prefix // not valid for a name
	name   string       // with a leading dot: all names below
	port   uint16
}

// Flag names the option of a policy.
const Flag = "--allow-targets"

// Parse reads an allow-list: ranges and addresses (10.0.0.0/8, 10.0.0.7, [fd00::7]:5432), names (db.example.com:5432,
// .example.com), and unix sockets (unix:/run/database), which are two lists in one. An empty list is the zero policy.
func Parse(list []string) (*Policy, error) {
	p := &Policy{}
	for _, text := range list {
		if path, ok := strings.CutPrefix(strings.TrimSpace(text), socketPrefix); ok {
			if !filepath.IsAbs(path) || strings.IndexByte(path, 0) >= 0 {
				return nil, engine.InvalidField(Flag, fmt.Sprintf("has %q, which is no path from the root", text),
					"write unix:/run/database for the sockets in a folder, or the path of one socket's file")
			}
			p.sockets = append(p.sockets, filepath.Clean(path))
			continue
		}
		r, ok := parse(strings.ToLower(strings.TrimSpace(text)))
		if !ok {
			return nil, engine.InvalidField(Flag, fmt.Sprintf("has %q, which is no address, range or name", text),
				"write 10.0.0.0/8, 10.0.0.7:5432, [fd00::7]:5432, db.example.com:5432, .example.com for all names below, or "+
					"unix:/run/database")
		}
		p.rules = append(p.rules, r)
	}
	return p, nil
}

func parse(text string) (r rule, ok bool) {
	if prefix, err := netip.ParsePrefix(text); err == nil {
		return rule{prefix: unmapPrefix(prefix)}, true
	}
	host := text
	if name, port, err := net.SplitHostPort(text); err == nil {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return r, false
		}
		host, r.port = name, uint16(n)
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "*"), ".")
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil && ip.Zone() == "" {
		r.prefix = unmapPrefix(netip.PrefixFrom(ip, ip.BitLen()))
		return r, true
	}
	// Labels of letters, digits, hyphens and underscores; what looks like an address is none that can be read.
	if host == "" || host == "." || strings.Trim(host, "0123456789.") == "" ||
		strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" || strings.Contains(host, "..") {
		return r, false
	}
	r.name = host
	return r, true
}

// unmapPrefix is a range of IPv4 that was written as one of IPv6.
func unmapPrefix(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked()
}

// metadataHosts are names under which clouds tell a machine its own keys.
var metadataHosts = map[string]bool{"metadata": true, "metadata.google.internal": true, "metadata.goog": true,
	"instance-data": true, "instance-data.ec2.internal": true}

// metadata are such addresses that are not of the link, and NAT64 of networks' own, where the place of the IPv4 address
// is theirs to choose.
var metadata = []netip.Prefix{netip.MustParsePrefix("fd00:ec2::/32"), netip.MustParsePrefix("fd20:ce::/64"),
	netip.MustParsePrefix("100.100.100.200/32"), netip.MustParsePrefix("192.0.0.192/32"),
	netip.MustParsePrefix("168.63.129.16/32"), netip.MustParsePrefix("64:ff9b:1::/48")}

// embeddedIPv4 are ranges of IPv6 that lead to an IPv4 address, which begins at a byte of theirs: NAT64, what is
// compatible, and 6to4.
var embeddedIPv4 = []struct {
	prefix netip.Prefix
	at     int
}{{netip.MustParsePrefix("64:ff9b::/96"), 12}, {netip.MustParsePrefix("::/96"), 12},
	{netip.MustParsePrefix("2002::/16"), 2}}

// IsForbidden reports whether nobody is spoken with at an address, whatever a list says.
func IsForbidden(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	if ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() ||
		slices.ContainsFunc(metadata, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return true
	}
	for _, w := range embeddedIPv4 {
		if ip.Is6() && !ip.IsLoopback() && w.prefix.Contains(ip) {
			b := ip.As16()
			return IsForbidden(netip.AddrFrom4([4]byte(b[w.at : w.at+4])))
		}
	}
	return false
}

// sharedRanges are networks behind a provider's or an operator's router, beside the private ones.
var sharedRanges = []netip.Prefix{netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("fec0::/10")}

// IsInternal reports whether an address is of this machine or of a network that the internet does not reach: what
// answers there may be meant for this machine alone.
func IsInternal(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	if ip.IsLoopback() || ip.IsPrivate() || IsForbidden(ip) ||
		slices.ContainsFunc(sharedRanges, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return true
	}
	for _, w := range embeddedIPv4 {
		if ip.Is6() && w.prefix.Contains(ip) {
			b := ip.As16()
			return IsInternal(netip.AddrFrom4([4]byte(b[w.at : w.at+4])))
		}
	}
	return false
}

// IsForbiddenHost reports whether a host as it is written is refused before anything is looked up: a name of a cloud's
// metadata, or an address that is always refused.
func IsForbiddenHost(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
	ip, err := netip.ParseAddr(host)
	return metadataHosts[host] || err == nil && IsForbidden(ip)
}

// InvalidFlag is the error for a flag whose value leads to such a host.
func InvalidFlag(flag, host string) error {
	return engine.InvalidField(flag, fmt.Sprintf("leads to %s: connections to it are refused", host),
		"addresses of the link and those where clouds tell a machine its keys are refused")
}

// Check judges an address that is about to be dialled, and the name that has led to it, which may be the address.
// A nil policy is the zero one.
func (p *Policy) Check(name string, at netip.AddrPort) error {
	ip := at.Addr().Unmap().WithZone("")
	if IsForbidden(ip) || IsForbiddenHost(name) {
		return &engine.Error{Code: engine.CodeTarget,
			Message: fmt.Sprintf("%s is an address of the link, or one where a cloud tells a machine its own keys: "+
				"connections to it are refused.", display(name, ip)), Hint: "Name the host that the system has in your network.",
			Cause: ErrRefused}
	}
	if p == nil || len(p.rules) == 0 {
		return nil
	}
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	for _, r := range p.rules {
		if (r.port == 0 || r.port == at.Port()) && r.matches(name, ip) {
			return nil
		}
	}
	return &engine.Error{Code: engine.CodeTarget,
		Message: fmt.Sprintf("%s, port %d, is not among the addresses that this server may reach.", display(name, ip),
			at.Port()),
		Hint: "Whoever runs the server names it with " + Flag + " (LOADSTONE_ALLOW_TARGETS).", Cause: ErrRefused}
}

// ErrRefused is the cause of every refusal.
var ErrRefused = refusal{}

type refusal struct{}

func (refusal) Error() string { return "the address may not be reached" }

func (r rule) matches(name string, ip netip.Addr) bool {
	switch {
	case r.prefix.IsValid():
		return r.prefix.Contains(ip)
	case strings.HasPrefix(r.name, "."):
		return strings.HasSuffix(name, r.name)
	}
	return name == r.name
}

func display(name string, ip netip.Addr) string {
	if !ip.IsValid() {
		return name
	}
	if name == "" || name == ip.String() {
		return ip.String()
	}
	return fmt.Sprintf("%s (%s)", name, ip)
}

// Dial connects to host:port, or to a unix socket, as net.Dialer does, where the policy lets it.
func (p *Policy) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = ""
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	return p.DialNamed(ctx, network, address, host)
}

// DialNamed is Dial for an address that a name was resolved to before. It takes as long as its context lets it, and
// where that sets no limit, as long as Dial.
func (p *Policy) DialNamed(ctx context.Context, network, address, name string) (net.Conn, error) {
	d := dialer(ctx)
	switch {
	case network == "unix":
		file, err := p.CheckSocket(address)
		if err != nil {
			return nil, err
		}
		return d.DialContext(ctx, network, file) //nolint:wrapcheck // it is the dialer
	case !strings.HasPrefix(network, "tcp"):
		return nil, &engine.Error{
			Code:    engine.CodeTarget,
			Message: fmt.Sprintf("%s is not dialled over %s.", address, network),
			Hint:    "Name a host and a port.",
			Cause:   ErrRefused,
		}
	}
	d.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("reading the address %s: %w", address, err)
		}
		return p.Check(name, at)
	}
	return d.DialContext(ctx, network, address) //nolint:wrapcheck // it is the dialer
}

func dialer(ctx context.Context) net.Dialer {
	d := net.Dialer{KeepAlive: keepAlive}
	if _, limited := ctx.Deadline(); !limited {
		d.Timeout = dialTimeout
	}
	return d
}

const (
	dialTimeout = 10 * time.Second
	keepAlive   = 30 * time.Second
)

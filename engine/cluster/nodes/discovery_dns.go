package nodes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// DNS is a name whose records lead to nodes.
type DNS struct {
	text string
	// name is asked for addresses with port; without one it is asked for SRV records.
	name, port string
	resolver   *net.Resolver
}

// ParseDNS reads dns://[server]/name[:port]. Without a server the machine's own are asked.
func ParseDNS(text string) (*DNS, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "dns" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, ErrDNSName
	}
	d := &DNS{text: text, resolver: &net.Resolver{}}
	d.name = strings.TrimPrefix(u.Path, "/")
	if host, port, err := net.SplitHostPort(d.name); err == nil {
		n, err := strconv.Atoi(port)
		if err != nil || n < 1 || n > 65535 {
			return nil, ErrDNSName
		}
		d.name, d.port = host, port
	}
	if d.name == "" || strings.ContainsAny(d.name, "/: \t") || d.port == "" && !strings.HasPrefix(d.name, "_") {
		return nil, ErrDNSName
	}
	if u.Host != "" {
		server := u.Host
		if u.Port() == "" {
			server = net.JoinHostPort(u.Hostname(), "53")
		}
		d.resolver = &net.Resolver{PreferGo: true,
			Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, server)
			}}
	}
	return d, nil
}

// String implements AddressProvider.
func (d *DNS) String() string { return d.text }

// Authoritative implements AddressProvider.
func (d *DNS) Authoritative() bool { return false }

// Addresses implements AddressProvider. A name without records is a service without nodes.
func (d *DNS) Addresses(ctx context.Context) ([]string, error) {
	var found []string
	var err error
	if d.port == "" {
		found, err = d.services(ctx)
	} else {
		found, err = d.hosts(ctx, d.name, d.port)
	}
	if err != nil && !isMissingName(err) {
		return nil, fmt.Errorf("asking for the addresses of %s: %w", d.name, err)
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

func isMissingName(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsNotFound
}

func (d *DNS) hosts(ctx context.Context, name, port string) (found []string, err error) {
	ips, err := d.resolver.LookupNetIP(ctx, "ip", name)
	for _, ip := range ips {
		found = append(found, net.JoinHostPort(ip.Unmap().String(), port))
	}
	return found, err
}

func (d *DNS) services(ctx context.Context) (found []string, err error) {
	_, records, err := d.resolver.LookupSRV(ctx, "", "", d.name)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		hosts, err := d.hosts(ctx, r.Target, strconv.Itoa(int(r.Port)))
		if err != nil && !isMissingName(err) {
			return nil, err
		}
		found = append(found, hosts...)
	}
	return found, nil
}

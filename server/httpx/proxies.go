package httpx

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/loadstone-db/loadstone/engine"
)

// Proxies are the addresses of proxies that are believed what they say of clients. What anybody else says is ignored.
type Proxies []netip.Prefix

// ParseProxies reads addresses and ranges: 10.0.0.7, 10.0.0.0/8, fd00::/8.
func ParseProxies(list []string) (p Proxies, err error) {
	for _, text := range list {
		text = strings.TrimSpace(text)
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			address, aerr := netip.ParseAddr(text)
			if aerr != nil || address.Zone() != "" {
				return nil, engine.InvalidField("--trusted-proxies", fmt.Sprintf("%q is no address or range", text),
					"write 10.0.0.7, or a range such as 10.0.0.0/8 or fd00::/8")
			}
			prefix = netip.PrefixFrom(address, address.BitLen())
		}
		if prefix.Addr().Is4In6() {
			prefix = netip.PrefixFrom(prefix.Addr().Unmap(), max(0, prefix.Bits()-96))
		}
		if prefix.Bits() == 0 {
			return nil, engine.InvalidField("--trusted-proxies", fmt.Sprintf("%q trusts everybody", text),
				"name the addresses of your proxies: else every client could say that it is another")
		}
		p = append(p, prefix.Masked())
	}
	return p, nil
}

// trusts reports whether an address is that of a proxy.
func (p Proxies) trusts(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return slices.ContainsFunc(p, func(prefix netip.Prefix) bool { return prefix.Contains(a) })
}

// ClientInfo is what is known of a request's client.
type ClientInfo struct {
	// IP is the client's address.
	IP string
	// Secure tells that the client speaks TLS, with the server or with its proxy.
	Secure bool
	// Host is what the client asked for, Asked what the request says: they differ behind a proxy that changes it.
	Host, RequestHost string
}

// Resolve looks at a request: its client is the rightmost address that is not a trusted proxy's.
func (p Proxies) Resolve(ctx *fasthttp.RequestCtx) ClientInfo {
	peer, ok := netip.AddrFromSlice(ctx.RemoteIP())
	requested := string(ctx.Request.Host())
	s := ClientInfo{IP: peer.Unmap().String(), Secure: ctx.IsTLS(), Host: requested, RequestHost: requested}
	if !ok || !p.trusts(peer) {
		return s
	}
	h := &ctx.Request.Header
	s.IP = p.clientAddress(peer, headerValues(h.PeekAll("X-Forwarded-For")))
	if protos := headerValues(h.PeekAll("X-Forwarded-Proto")); len(protos) > 0 {
		s.Secure = s.Secure || strings.EqualFold(protos[len(protos)-1], "https")
	}
	if hosts := headerValues(h.PeekAll("X-Forwarded-Host")); len(hosts) > 0 {
		s.Host = hosts[len(hosts)-1]
	}
	return s
}

// clientAddress goes the way back from a trusted peer. Who says something else than an address is not believed further.
func (p Proxies) clientAddress(peer netip.Addr, hops []string) string {
	last := peer
	for _, hop := range slices.Backward(hops) {
		a, err := netip.ParseAddr(strings.Trim(hop, "[]"))
		if err != nil {
			with, perr := netip.ParseAddrPort(hop)
			if perr != nil {
				break
			}
			a = with.Addr()
		}
		last = a
		if !p.trusts(a) {
			break
		}
	}
	return last.Unmap().WithZone("").String()
}

// headerValues are the values of a header that may come more than once, each a list.
func headerValues(values [][]byte) (all []string) {
	for _, v := range values {
		for one := range strings.SplitSeq(string(v), ",") {
			if one = strings.TrimSpace(one); one != "" {
				all = append(all, one)
			}
		}
	}
	return all
}

package rpc

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine/base/secret"
)

// Keepalive: a peer is asked after keepaliveTime without activity, and gone when
// nothing has come keepaliveLimit later. What a client may ask more often than
// every keepaliveLeast is a flood.
const (
	keepaliveTime    = 10 * time.Second
	keepaliveTimeout = 5 * time.Second
	minKeepalive     = 5 * time.Second
)

// Security is how a connection is kept private. The zero Security is plain, and
// good for loopback only.
type Security struct {
	// TLS is nil for a plain connection.
	TLS *tls.Config
	// Token is what the server must know; empty where certificates of both sides say who is who.
	Token secret.Secret
	// Plain allows a connection without TLS beyond loopback.
	Plain bool
}

// ErrPlain says that an address is not of this machine, and the connection would not be private.
var ErrPlain = errors.New("a connection without TLS is for this machine only")

// check refuses a plain connection to or on an address that is not of this machine.
func (s Security) check(address string) error {
	if s.TLS != nil || s.Plain {
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("reading the address %s: %w", address, err)
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("%w: %s is not", ErrPlain, address)
}

const (
	authorization = "authorization"
	bearer        = "Bearer "
)

// knows reports whether an authorization is the token.
func (s Security) knows(given string) bool {
	if s.Token.IsZero() {
		return true
	}
	token, ok := strings.CutPrefix(given, bearer)
	return ok && subtle.ConstantTimeCompare([]byte(token), []byte(s.Token.Reveal())) == 1
}

// GetRequestMetadata makes a Security the credentials of each call.
func (s Security) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	if s.Token.IsZero() {
		return nil, nil
	}
	return map[string]string{authorization: bearer + s.Token.Reveal()}, nil
}

// RequireTransportSecurity is false: check has decided about that.
func (s Security) RequireTransportSecurity() bool { return false }

// sign does the same for a request over HTTP.
func (s Security) sign(r *http.Request) {
	if !s.Token.IsZero() {
		r.Header.Set(authorization, bearer+s.Token.Reveal())
	}
}

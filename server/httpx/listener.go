package httpx

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/netutil"
)

// Listener speaks TLS on what l accepts. Who speaks plain HTTP there is sent to https: a request that reads with
// 308, any other is told, since what it carries has crossed the network in the clear already.
func Listener(l net.Listener, config *tls.Config, hosts Hosts) net.Listener {
	return &listener{Listener: l, config: config, hosts: hosts}
}

type listener struct {
	net.Listener
	config *tls.Config
	hosts  Hosts
}

// Accept returns the next connection; its handshake comes with the first read, beside the others.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	below := &replayConn{Conn: c, limit: maxPlainBytes}
	return &conn{Conn: tls.Server(below, l.config), inner: below, hosts: l.hosts}, nil
}

// conn is a connection over TLS; what it has of tls.Conn is what fasthttp knows TLS by.
type conn struct {
	*tls.Conn
	inner *replayConn
	hosts Hosts
}

// replayConn keeps what a connection begins with, until its handshake is over: what TLS has read of a request that is
// not TLS it does not give back.
type replayConn struct {
	net.Conn
	limit int // 0 once nothing is kept any more
	text  []byte
}

// Read reads.
func (b *replayConn) Read(p []byte) (int, error) {
	n, err := b.Conn.Read(p)
	if room := b.limit - len(b.text); room > 0 {
		b.text = append(b.text, p[:min(n, room)]...)
	}
	return n, err //nolint:wrapcheck // it is the connection
}

// NetConn is the connection itself.
func (b *replayConn) NetConn() net.Conn { return b.Conn }

// Handshake is that of TLS, and answers who does not speak it.
func (c *conn) Handshake() error {
	err := c.HandshakeContext(context.Background()) // the deadline of the connection bounds it
	text := c.inner.text
	c.inner.limit, c.inner.text = 0, nil
	var plain tls.RecordHeaderError
	if errors.As(err, &plain) && plain.Conn != nil {
		_ = plain.Conn.SetDeadline(time.Now().Add(plainTimeout))
		_ = answerPlain(plain.Conn, text, c.hosts)
	}
	return err //nolint:wrapcheck // it is the handshake
}

const (
	// plainTimeout is how long a request without TLS may take.
	plainTimeout = 5 * time.Second
	// maxPlainBytes is the most bytes of it that are read.
	maxPlainBytes = 16 << 10
)

const plainText = "This address speaks TLS: open it with https.\n" +
	"What was sent has crossed the network in the clear: a secret in it is to be replaced.\n"

// answerPlain answers the request that begins with what was read of it.
func answerPlain(c io.ReadWriter, started []byte, hosts Hosts) error {
	req, err := http.ReadRequest(
		bufio.NewReader(io.MultiReader(bytes.NewReader(started), io.LimitReader(c, maxPlainBytes))),
	)
	if err != nil {
		return fmt.Errorf("reading a request: %w", err)
	}
	answer := "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n"
	if (req.Method == http.MethodGet || req.Method == http.MethodHead) && hosts.Allow(req.Host) {
		answer = "HTTP/1.1 308 Permanent Redirect\r\nLocation: https://" + req.Host + req.URL.RequestURI() +
			"\r\nContent-Type: text/plain; charset=utf-8\r\n"
	}
	_, err = fmt.Fprintf(c, "%sContent-Length: %d\r\nConnection: close\r\n\r\n%s", answer, len(plainText), plainText)
	if err != nil {
		return fmt.Errorf("answering a request: %w", err)
	}
	return nil
}

// Redirect is a listener beside that of TLS, mostly on port 80: it sends people to https, and answers the challenges
// of an authority.
type Redirect struct {
	server *http.Server
	done   chan struct{}
	// Addr is where it listens.
	Addr string
}

// maxRedirectConns bounds the connections of a Redirect.
const maxRedirectConns = 256

// OpenRedirect begins to send those who come to addr to the port, the one of TLS. A challenges that is not nil answers
// what an authority asks; it gets the handler for all else.
func OpenRedirect(addr, port string, hosts Hosts, challenges func(http.Handler) http.Handler) (*Redirect, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listening for plain HTTP: %w", err)
	}
	var handler http.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Connection", "close")
		if !hosts.Allow(req.Host) {
			http.Error(w, "This server is not known by that name.", http.StatusMisdirectedRequest)
			return
		}
		if req.Method != http.MethodGet && req.Method != http.MethodHead {
			http.Error(w, strings.TrimSpace(plainText), http.StatusBadRequest)
			return
		}
		host := hostOf(req.Host)
		if port != "443" {
			host = net.JoinHostPort(strings.Trim(host, "[]"), port)
		}
		//nolint:gosec // the host is checked before
		http.Redirect(
			w,
			req,
			"https://"+host+req.URL.RequestURI(),
			http.StatusPermanentRedirect,
		)
	})
	if challenges != nil {
		answers := challenges(handler)
		handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if strings.HasPrefix(req.URL.Path, "/.well-known/acme-challenge/") {
				req.Host = hostOf(req.Host) // domains are compared without a port
			}
			answers.ServeHTTP(w, req)
		})
	}
	r := &Redirect{Addr: l.Addr().String(), done: make(chan struct{}), server: &http.Server{Handler: handler,
		ReadTimeout: plainTimeout, WriteTimeout: plainTimeout, IdleTimeout: plainTimeout, MaxHeaderBytes: maxPlainBytes}}
	go func() {
		defer close(r.done)
		_ = r.server.Serve(netutil.LimitListener(l, maxRedirectConns))
	}()
	return r, nil
}

// Close ends it.
func (r *Redirect) Close() {
	_ = r.server.Close()
	<-r.done
}

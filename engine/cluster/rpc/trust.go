package rpc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/pki"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/rpc/pb"
)

// Trust is whom the servers of one control store believe by their own authority.
type Trust interface {
	// Certificate is the server's own, as it is now.
	Certificate() (*tls.Certificate, error)
	// Node decides about a node by the certificates that it has shown.
	Node(shown []*x509.Certificate) (pki.Peer, error)
	// Admit signs for a node that joins at an address. Who may not is told why by an *engine.Error.
	Admit(ctx context.Context, address string, a pki.CertificateRequest) (pki.SignedCertificate, error)
	// Renew signs for a node that has shown who it is.
	Renew(ctx context.Context, who pki.Peer, a pki.CertificateRequest) (pki.SignedCertificate, error)
}

var (
	// ErrNotTLS says that a node speaks without TLS.
	ErrNotTLS = errors.New("what listens there has no TLS: a node that was started without --join TOKEN (loadstone node " +
		"token makes one), or another program")
	// ErrServerRejected says that the node has ended a handshake, because it does not believe this server.
	ErrServerRejected = errors.New("the node does not believe this server")
)

// trustState is the part of a Dialer that deals with an authority of its own.
type trustState struct {
	streams outcome // of the handshakes of the connection that streams go over

	mu sync.Mutex
	// socket is the connection that stands, shown what the node has shown on it, or has got since.
	socket net.Conn
	shown  []*x509.Certificate
	// who is the node of the stream that stands, cut ends that.
	who pki.Peer
	cut func()
}

// trustTLS is how nodes are dialled with an authority: join accepts one that has not joined.
func (d *Dialer) trustTLS(join bool) *tls.Config {
	return pki.ClientTLS(d.opts.Trust.Certificate, func(shown []*x509.Certificate) error {
		_, err := d.opts.Trust.Node(shown)
		if join && errors.Is(err, pki.ErrJoining) {
			return nil
		}
		return err
	})
}

// partsTLS is the same for the parts of a record, which come from the node of the stream only.
func (d *Dialer) partsTLS() *tls.Config {
	config := d.streamTLS()
	config.NextProtos = []string{"http/1.1"}
	return config
}

// outcome ends an attempt that is under way with what a handshake of its connection has come to.
type outcome struct {
	mu   sync.Mutex
	fail context.CancelCauseFunc
}

// watch does what needs a handshake, and ends it with the reason when that fails.
func (o *outcome) watch(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	o.set(cancel)
	err := do(ctx)
	o.set(nil)
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(cause, ctx.Err()) {
		return cause
	}
	return err
}

func (o *outcome) set(fail context.CancelCauseFunc) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fail = fail
}

func (o *outcome) failed(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fail != nil {
		o.fail(err)
	}
}

// handshakes are credentials that tell a Dialer what has become of each handshake, which gRPC
// would keep to itself and repeat.
type handshakes struct {
	credentials.TransportCredentials
	outcome *outcome
	// done takes a connection that has been made; nil where nobody asks.
	done func(net.Conn, []*x509.Certificate)
}

func (h handshakes) Clone() credentials.TransportCredentials {
	return handshakes{h.TransportCredentials.Clone(), h.outcome, h.done}
}

func (h handshakes) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn,
	credentials.AuthInfo, error) {
	conn, info, err := h.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		h.outcome.failed(refusal(err))
		return nil, nil, err
	}
	if h.done != nil {
		h.done(conn, shownOn(info))
	}
	return &alertConn{conn, h.outcome}, info, nil
}

// connected notes the connection that streams go over.
func (d *Dialer) connected(conn net.Conn, shown []*x509.Certificate) {
	d.trusted.mu.Lock()
	defer d.trusted.mu.Unlock()
	d.trusted.socket, d.trusted.shown = conn, shown
}

// alertConn notices what the node says of the server's certificate: with TLS 1.3 it does so
// when the handshake is over for the server.
type alertConn struct {
	net.Conn
	outcome *outcome
}

func (c *alertConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	var remote *net.OpError
	if err != nil && errors.As(err, &remote) && remote.Op == "remote error" {
		c.outcome.failed(refusal(err))
	}
	return n, err
}

// refusal is a failed handshake in words, as far as it will fail again.
func refusal(err error) error {
	var plain tls.RecordHeaderError
	var remote *net.OpError
	switch {
	case errors.As(err, &plain):
		return ErrNotTLS
	case errors.As(err, &remote) && remote.Op == "remote error":
		return fmt.Errorf("%w (%w): it has joined other servers, or its token is of others, or the clocks are far apart; "+
			"its own log says which", ErrServerRejected, remote.Err)
	}
	return err
}

// maxJoins is how often a node is let join in one attempt: a handshake that was under way
// while it did tells of the time before.
const maxJoins = 3

// dialTrusted opens a stream to a node that has joined, and lets one that has not join before.
func (d *Dialer) dialTrusted(ctx context.Context) (end protocol.ServerEnd, err error) {
	for joined := 0; ; joined++ {
		err = d.trusted.streams.watch(ctx, func(ctx context.Context) error {
			d.conn.ResetConnectBackoff()
			end, err = d.open(ctx)
			return err
		})
		switch {
		case err == nil:
			return end, nil
		case !errors.Is(err, pki.ErrJoining) || joined == maxJoins:
			return nil, fmt.Errorf("dialling the node at %s: %w", d.opts.Address, err)
		}
		if joined > 0 {
			continue
		}
		if err := d.join(ctx); err != nil {
			return nil, fmt.Errorf("letting the node at %s join: %w", d.opts.Address, err)
		}
	}
}

// drop closes the connection, so that the next stream begins with a handshake, and those of fragments.
func (d *Dialer) drop() {
	d.fragments.Drop(false)
	d.trusted.mu.Lock()
	defer d.trusted.mu.Unlock()
	if d.trusted.socket != nil {
		_ = d.trusted.socket.Close()
	}
	d.http.CloseIdleConnections()
}

// identified is the node of a stream, which may have been revoked since its handshake.
func (d *Dialer) identified(ctx context.Context) (pki.Peer, error) {
	p, _ := peer.FromContext(ctx)
	if p == nil {
		return pki.Peer{}, pki.ErrNoCertificate
	}
	who, err := d.opts.Trust.Node(shownOn(p.AuthInfo))
	if err != nil {
		d.drop()
	}
	return who, err
}

func shownOn(info credentials.AuthInfo) []*x509.Certificate {
	if info, ok := info.(credentials.TLSInfo); ok {
		return info.State.PeerCertificates
	}
	return nil
}

// hold notes the stream that stands, and renews the node's certificate while it does.
func (d *Dialer) hold(ctx context.Context, who pki.Peer, cut func()) {
	d.trusted.mu.Lock()
	d.trusted.who, d.trusted.cut = who, cut
	d.trusted.mu.Unlock()
	go d.renewing(ctx, who)
}

// Recheck ends the stream to a node that is not believed any more.
func (d *Dialer) Recheck() {
	if d.opts.Trust == nil {
		return
	}
	d.trusted.mu.Lock()
	shown, cut := d.trusted.shown, d.trusted.cut
	d.trusted.mu.Unlock()
	if cut == nil {
		return
	}
	if _, err := d.opts.Trust.Node(shown); err != nil {
		cut()
		d.drop()
	}
}

// named refuses a node whose name is none, or that of the server's own.
func named(w *pb.FromNode) (protocol.FromNode, error) {
	m, err := fromNode(w)
	if h, ok := m.(protocol.Hello); ok && err == nil {
		err = pki.CheckID(h.NodeID)
	}
	return m, err
}

// claimed refuses a node that calls itself another than its certificate.
func claimed(who pki.Peer) func(*pb.FromNode) (protocol.FromNode, error) {
	return func(w *pb.FromNode) (protocol.FromNode, error) {
		m, err := fromNode(w)
		if h, ok := m.(protocol.Hello); ok && h.NodeID != who.ID {
			return nil, fmt.Errorf("the node calls itself %q, and its certificate is for %q", h.NodeID, who.ID)
		}
		return m, err
	}
}

// join lets a node join over a connection of its own, on which nothing else is said.
func (d *Dialer) join(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	var first outcome
	conn, err := d.newConn(handshakes{credentials.NewTLS(d.trustTLS(true)), &first, nil})
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	client := pb.NewNodeServiceClient(conn)
	return first.watch(ctx, func(ctx context.Context) error {
		return certify(ctx, client, func(a pki.CertificateRequest) (pki.SignedCertificate, error) {
			return d.opts.Trust.Admit(ctx, d.opts.Address, a)
		})
	})
}

// joinTimeout bounds the exchange by which a node gets a certificate.
const joinTimeout = 5 * time.Second

// certify asks a node for its request, and brings it what was signed, or why nothing was.
func certify(ctx context.Context, client pb.NodeServiceClient,
	sign func(pki.CertificateRequest) (pki.SignedCertificate, error)) error {
	r, err := client.RequestCertificate(ctx, &pb.RequestCertificateRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return withoutGRPC(err)
	}
	signed, refused := sign(
		pki.CertificateRequest{TokenID: r.GetTokenId(), Proof: r.GetTokenSecret(), Request: r.GetRequest()},
	)
	answer := &pb.InstallCertificateRequest{Certificate: signed.Certificate, Authority: signed.Authority}
	if refused != nil {
		why := engine.AsError(refused)
		answer = &pb.InstallCertificateRequest{Refusal: why.Message, Hint: why.Hint}
	}
	_, err = client.InstallCertificate(ctx, answer)
	if refused != nil {
		return refused
	}
	if err != nil {
		return withoutGRPC(err)
	}
	return nil
}

// renewing renews the node's certificate when two thirds of its life are over, until ctx ends.
func (d *Dialer) renewing(ctx context.Context, who pki.Peer) {
	next := who.RenewAt()
	r := renewal{d: d, who: who}
	for {
		timer := time.NewTimer(max(time.Until(next), minRenewInterval))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		limited, cancel := context.WithTimeout(ctx, joinTimeout)
		err := certify(
			limited,
			d.client,
			func(a pki.CertificateRequest) (pki.SignedCertificate, error) { return r.sign(limited, a) },
		)
		cancel()
		next = r.who.RenewAt()
		if err == nil {
			r.offered = pki.SignedCertificate{}
		} else {
			// Who signs has said why; it is tried until the stream ends.
			next = time.Now().Add(renewRetryDelay)
		}
	}
}

// renewal is the next certificate of a node.
type renewal struct {
	d   *Dialer
	who pki.Peer
	// offered is one that the node is not known to keep.
	offered pki.SignedCertificate
}

// sign has a certificate made, once: while a node cannot keep it, on a full disk for one, it is
// offered the same again, because the control store remembers each that is made.
func (r *renewal) sign(ctx context.Context, a pki.CertificateRequest) (pki.SignedCertificate, error) {
	if asked, err := pki.ReadRequest(a.Request); err == nil && asked.Key == r.offered.Key {
		return r.offered, nil
	}
	s, err := r.d.opts.Trust.Renew(ctx, r.who, a)
	if err == nil {
		r.offered = s
		r.who.Serial, r.who.Issued, r.who.NotAfter = s.Serial, time.Now(), s.NotAfter
		r.d.renewed(s)
	}
	return s, err
}

// renewed notes the certificate that counts for the stream from now on.
func (d *Dialer) renewed(s pki.SignedCertificate) {
	c, err := x509.ParseCertificate(s.Certificate)
	if err != nil {
		return // the node says what is wrong with it
	}
	d.trusted.mu.Lock()
	defer d.trusted.mu.Unlock()
	d.trusted.shown = []*x509.Certificate{c}
}

// renewPause is the least time between two attempts to renew a certificate, renewAgain that
// after one that failed.
const (
	minRenewInterval = time.Second
	renewRetryDelay  = time.Minute
)

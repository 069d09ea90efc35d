package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/cluster/pki"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/rpc/pb"
	"github.com/loadstone-db/loadstone/engine/cluster/version"
)

// DialOptions say which node is dialled, and by whom.
type DialOptions struct {
	// Address is the node's host:port.
	Address  string
	Security Security
	// Trust is the servers' own authority, in place of Security; nil without one.
	Trust Trust
	// Joined remembers at which addresses nodes with certificates have answered; nil where this process alone does.
	Joined JoinedNodes
	// Version is the server's; Process names it until it restarts.
	Version, Process string
	// Store names the control store of the server, where nodes keep those of several apart; nil names none.
	Store func(ctx context.Context) (string, error)
	// Sessions numbers the streams of the process, whatever way they take; nil where there is one way only.
	Sessions *atomic.Int64
}

// JoinedNodes remembers, beyond this process, the addresses at which nodes with certificates have answered.
type JoinedNodes interface {
	NoteJoined(ctx context.Context, address string) error
	HasJoined(ctx context.Context, address string) (bool, error)
}

// Dialer opens streams to one node over one connection. It implements protocol.Dialer.
type Dialer struct {
	opts   DialOptions
	conn   *grpc.ClientConn
	client pb.NodeServiceClient
	http   *http.Client
	// idle is idleLimit, less in tests.
	idle    time.Duration
	trusted trustState
	// unreached is why the address was not reached when it was last tried, nil when it was. gRPC keeps it to itself.
	unreached atomic.Pointer[error]
	// fragments are connections beside that of the streams.
	fragments Conns
}

// NewDialer prepares a connection; nothing is dialled before Dial.
func NewDialer(opts DialOptions) (*Dialer, error) {
	if err := opts.Security.check(opts.Address); err != nil && opts.Trust == nil {
		return nil, err
	}
	d := &Dialer{opts: opts, idle: idleTimeout}
	if d.opts.Sessions == nil {
		d.opts.Sessions = &atomic.Int64{}
	}
	// The parts of a node come one after the other, at the end of a run, when the connections to a thousand nodes would
	// take memory beside everything else.
	transport := &http.Transport{DialContext: egress.Unrestricted().Dial,
		MaxIdleConnsPerHost: 4, IdleConnTimeout: 5 * time.Second,
		ResponseHeaderTimeout: 30 * time.Second,
		DisableCompression:    true}
	creds := insecure.NewCredentials()
	switch config := opts.Security.TLS; {
	case opts.Trust != nil:
		creds = handshakes{credentials.NewTLS(d.trustTLS(false)), &d.trusted.streams, d.connected}
		transport.TLSClientConfig = d.partsTLS()
	case config != nil:
		creds = credentials.NewTLS(config)
		transport.TLSClientConfig = config.Clone()
		transport.TLSClientConfig.NextProtos = []string{"http/1.1"}
	}
	d.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return errors.New("a node sends nobody elsewhere")
	}}
	var err error
	if d.conn, err = d.newConn(creds); err != nil {
		return nil, err
	}
	d.client = pb.NewNodeServiceClient(d.conn)
	return d, nil
}

// newConn is a connection to the node; nothing is dialled before it is used.
func (d *Dialer) newConn(creds credentials.TransportCredentials, more ...grpc.DialOption) (*grpc.ClientConn, error) {
	// The pause between attempts is the dialler's caller's; this one bounds how fast a
	// connection is tried below it.
	conn, err := grpc.NewClient("passthrough:///"+d.opts.Address, append([]grpc.DialOption{
		grpc.WithTransportCredentials(creds),
		grpc.WithPerRPCCredentials(d.opts.Security), grpc.WithDisableServiceConfig(), grpc.WithNoProxy(),
		grpc.WithIdleTimeout(0), grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			conn, err := egress.Unrestricted().Dial(ctx, "tcp", address)
			if err != nil {
				d.unreached.Store(&err)
			} else {
				d.unreached.Store(nil)
			}
			return conn, err
		}),
		// A server has a thousand of these, which are quiet most of the time: 50 MB less with small buffers.
		grpc.WithReadBufferSize(4 << 10), grpc.WithWriteBufferSize(4 << 10),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6,
			Jitter: 0.2, MaxDelay: 5 * time.Second}, MinConnectTimeout: 5 * time.Second}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveTime, Timeout: keepaliveTimeout,
			PermitWithoutStream: true}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(protocol.MaxMessage),
			grpc.MaxCallSendMsgSize(2*protocol.MaxMessage))}, more...)...)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to %s: %w", d.opts.Address, err)
	}
	return conn, nil
}

// Address implements protocol.Addressed.
func (d *Dialer) Address() string { return d.opts.Address }

// Dial implements protocol.Dialer. It returns when the node has let the stream in.
func (d *Dialer) Dial(ctx context.Context) (protocol.ServerEnd, error) {
	if d.opts.Trust != nil {
		return d.dialTrusted(ctx)
	}
	return d.open(ctx)
}

func (d *Dialer) open(ctx context.Context) (protocol.ServerEnd, error) {
	name := ""
	if d.opts.Store != nil {
		var err error
		if name, err = d.opts.Store(ctx); err != nil {
			return nil, fmt.Errorf("reading whose nodes these are: %w", err)
		}
	}
	life, cut := context.WithCancel(context.WithoutCancel(ctx))
	stopped := context.AfterFunc(ctx, cut)
	s, err := d.client.Control(life, grpc.WaitForReady(true))
	asked := time.Now()
	if err == nil {
		err = s.Send(&pb.ToNode{Message: &pb.ToNode_Open{Open: &pb.Open{ServerVersion: d.opts.Version,
			Protocol: version.Protocol, Store: name,
			ServerProcess: d.opts.Process, Session: d.opts.Sessions.Add(1), Link: d.opts.Address}}})
	}
	if errors.Is(err, io.EOF) {
		_, err = s.Recv() // why the stream has ended already
	}
	if err == nil {
		var md metadata.MD
		if md, err = s.Header(); err == nil && len(md.Get(admitted)) == 0 {
			_, err = s.Recv() // the refusal
		}
	}
	took := time.Since(asked)
	read := named
	if err == nil && d.opts.Trust != nil {
		var who pki.Peer
		if who, err = d.identified(s.Context()); err == nil {
			read = claimed(who)
			d.hold(life, who, cut)
		}
	}
	if !stopped() {
		err = errNoResponse // what gRPC says of that is that it was cancelled
		if why := d.unreached.Load(); why != nil {
			err = fmt.Errorf("nobody was reached there: %w", *why)
		} else if errors.Is(context.Cause(ctx), context.DeadlineExceeded) && d.isOtherService(ctx) {
			err = errNoNode
		}
		if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) {
			err = cause
		}
	}
	if err != nil {
		cut()
		if status.Code(err) == codes.PermissionDenied {
			err = fmt.Errorf("%w: %w", protocol.ErrOtherStore, withoutGRPC(err))
		}
		if err = withoutGRPC(err); d.opts.Trust == nil {
			err = fmt.Errorf("dialling the node at %s: %w", d.opts.Address, err)
		}
		return nil, err
	}
	e := newEnd[protocol.ToNode, protocol.FromNode](s, one(toWire), whole(read), cut, func() { _ = s.CloseSend() })
	return &serverEnd{e, d, took}, nil
}

// errNoNode says that something else listens where a node is dialled.
var errNoNode = errors.New("what listens there is no node of Loadstone: check the address, or start loadstone worker " +
	"--listen at it")

// isOtherService reports whether something answers at the address as no node does: it is greeted as gRPC does, and a
// server of HTTP/2 begins with its settings, a length and then a type, which is 4. What has TLS is told by its
// handshake.
func (d *Dialer) isOtherService(ctx context.Context) bool {
	if d.opts.Trust != nil || d.opts.Security.TLS != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second) // that of ctx is over
	defer cancel()
	conn, err := egress.Unrestricted().Dial(ctx, "tcp", d.opts.Address)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	const kind = 3
	var head [kind + 1]byte
	if _, err = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"); err == nil {
		_, err = io.ReadFull(conn, head[:])
	}
	return err == nil && head[kind] != 4
}

// errNoResponse says that there was nobody, or that the way is too long.
var errNoResponse = fmt.Errorf("the node has not answered in time: %w", context.DeadlineExceeded)

// Close ends the connection and all that uses it.
func (d *Dialer) Close() error {
	d.http.CloseIdleConnections()
	d.fragments.Drop(true)
	return d.conn.Close()
}

// admitted is the header that says that a stream was let in.
const admitted = "loadstone-admitted"

// withoutGRPC is an error without the words of gRPC, which say nothing to a user.
func withoutGRPC(err error) error {
	s, ok := status.FromError(err)
	if !ok || s.Code() == codes.OK {
		return err
	}
	if s.Code() == codes.AlreadyExists {
		return fmt.Errorf("%w: %s", protocol.ErrSameNode, s.Message())
	}
	return errors.New(s.Message())
}

type serverEnd struct {
	*end[protocol.ToNode, protocol.FromNode, *pb.ToNode, *pb.FromNode]
	dialer *Dialer
	rtt    time.Duration
}

// RoundTrip implements protocol.TimedStream.
func (e *serverEnd) RoundTrip() time.Duration { return e.rtt }

// Refuse implements protocol.Refuser.
func (e *serverEnd) Refuse(ctx context.Context, reason string) error {
	_, err := e.dialer.client.InstallCertificate(ctx, &pb.InstallCertificateRequest{Refusal: reason})
	if err != nil {
		return fmt.Errorf("telling a node why it is refused: %w", withoutGRPC(err))
	}
	return nil
}

// chunk is how much of a plugin travels in one message.
const chunk = 256 << 10

// PutPlugin implements protocol.PluginReceiver.
func (e *serverEnd) PutPlugin(ctx context.Context, sum string, wasm []byte) error {
	s, err := e.dialer.client.PutPlugin(ctx)
	if err != nil {
		return fmt.Errorf("sending a plugin: %w", withoutGRPC(err))
	}
	r := &pb.PutPluginRequest{Sha256: sum}
	for {
		n := min(chunk, len(wasm))
		r.Chunk, wasm = wasm[:n], wasm[n:]
		if err := s.Send(r); err != nil {
			break // the answer says why
		}
		if len(wasm) == 0 {
			break
		}
		r = &pb.PutPluginRequest{}
	}
	if _, err := s.CloseAndRecv(); err != nil {
		return fmt.Errorf("sending a plugin: %w", withoutGRPC(err))
	}
	return nil
}

// idleTimeout is how long a node may take for the next bytes of a part.
const idleTimeout = 30 * time.Second

// OpenPart implements protocol.ServerEnd. Only the node that the stream leads to is
// asked: what it announces is a path there, and it sends nobody elsewhere.
func (e *serverEnd) OpenPart(ctx context.Context, p protocol.WorkReady) (io.ReadCloser, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	where := url.URL{Scheme: "http", Host: e.dialer.opts.Address, Path: p.ArtifactURL}
	if e.dialer.opts.Security.TLS != nil || e.dialer.opts.Trust != nil {
		where.Scheme = "https"
	}
	ctx, cancel := context.WithCancelCause(ctx)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, where.String(), nil)
	if err != nil {
		cancel(nil)
		return nil, fmt.Errorf("fetching %s: %w", p.WorkID, err)
	}
	e.dialer.opts.Security.sign(r)
	answer, err := e.dialer.http.Do(r)
	if err == nil && answer.StatusCode != http.StatusOK {
		_ = answer.Body.Close()
		err = fmt.Errorf("the node answers %s", answer.Status)
		if answer.StatusCode == http.StatusNotFound {
			err = fmt.Errorf("%w: %w", os.ErrNotExist, err)
		}
	}
	if err != nil {
		cancel(nil)
		return nil, fmt.Errorf("fetching %s: %w", p.WorkID, err)
	}
	return newBody(ctx, cancel, answer.Body, e.dialer.idle, p.Artifact.SizeBytes), nil
}

var (
	errSilent = errors.New("the node has sent nothing for too long")
	errSlow   = errors.New("the node takes too long for a part of that size")
)

// minRate is how many bytes a second a node sends of a part at least: one that keeps a server waiting
// with a byte now and then would keep the run of the part from its end.
const minRate = 16 << 10

// partTimeout is how long a part of that size may take where silence may last for idle.
func partTimeout(size int64, idle time.Duration) time.Duration {
	return 4*idle + time.Duration(min(max(size, 0), 1<<40)/minRate)*time.Second
}

// body is a part on its way. It ends when nothing comes for a while.
type body struct {
	io.ReadCloser
	ctx    context.Context //nolint:containedctx // of the request
	cancel context.CancelCauseFunc
	timer  *time.Timer
	limit  time.Duration
	whole  *time.Timer
}

func newBody(ctx context.Context, cancel context.CancelCauseFunc, r io.ReadCloser, limit time.Duration,
	size int64) *body {
	return &body{ReadCloser: r, ctx: ctx, cancel: cancel, limit: limit,
		timer: time.AfterFunc(limit, func() { cancel(errSilent) }),
		whole: time.AfterFunc(partTimeout(size, limit), func() { cancel(errSlow) })}
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.timer.Reset(b.limit)
	if err != nil && !errors.Is(err, io.EOF) {
		if cause := context.Cause(b.ctx); cause != nil {
			err = cause
		}
		err = fmt.Errorf("fetching a part: %w", err)
	}
	return n, err
}

func (b *body) Close() error {
	b.timer.Stop()
	b.whole.Stop()
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}

package rpc

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/loadstone-db/loadstone/engine/cluster/pki"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/rpc/pb"
	"github.com/loadstone-db/loadstone/engine/cluster/version"
)

// ListenOptions say how a node is reached, and what it has to give.
type ListenOptions struct {
	// Address is host:port to listen on.
	Address  string
	Security Security
	// Identity is the node's own, in place of Security; nil without one.
	Identity *pki.Identity
	// Version is the node's, for servers that are too old to compare it with theirs.
	Version string
	// Store is the file that keeps which control store the node works for; "" keeps it in memory only.
	Store string
	// Plugin takes a module that the server brings; its hash has been checked.
	Plugin func(ctx context.Context, wasm []byte) error
	// Segment takes a segment that the server brings, in reading it to its end; nil takes none.
	Segment func(ctx context.Context, sha256 string, bytes int64, content io.Reader) error
	// Fragments runs fragments of continuous queries; nil runs none.
	Fragments protocol.FragmentHost
	Log       zerolog.Logger
}

// Listener serves what a server asks of a node. It implements protocol.StoreListener.
type Listener struct {
	pb.UnimplementedNodeServiceServer

	opts   ListenOptions
	socket net.Listener
	grpc   *grpc.Server
	http   *http.Server
	health *health.Server
	mux    *protocolMux
	accept chan protocol.NodeEnd
	done   chan struct{}
	serves sync.WaitGroup
	closed sync.Once
	// binding is which control store's servers the node works for.
	binding *storeBinding

	mu sync.Mutex
	// held are the streams, by the server's process.
	held   map[string]holder
	served protocol.Parts
}

// holder is the stream that a server has, or had last.
type holder struct {
	// link is the way by which it has come, empty of an older server.
	link    string
	session int64
	end     *nodeEnd      // nil when it has ended
	left    *nodeEnd      // that which has ended: what it has in its hand counts until the next stream
	gone    chan struct{} // closed when its handler has ended
	at      time.Time     // when it began
}

// maxHolders is how many servers' processes are remembered; more than that are no longer there.
const maxHolders = 256

// peerEnd is the node's end of a stream to the process of a server.
type peerEnd struct {
	*nodeEnd
	server string
}

// Server implements protocol.Peer.
func (e peerEnd) Server() string { return e.server }

type nodeEnd = end[protocol.FromNode, protocol.ToNode, *pb.FromNode, *pb.ToNode]

// Listen begins to serve; streams wait for Accept.
func Listen(ctx context.Context, opts ListenOptions) (*Listener, error) {
	if opts.Identity != nil {
		opts.Security.TLS = opts.Identity.TLS()
	}
	if err := opts.Security.check(opts.Address); err != nil {
		return nil, err
	}
	belongs, err := newStoreBinding(opts.Store, opts.Log)
	if err != nil {
		return nil, err
	}
	socket, err := (&net.ListenConfig{}).Listen(ctx, "tcp", opts.Address)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", opts.Address, err)
	}
	l := &Listener{opts: opts, socket: socket, accept: make(chan protocol.NodeEnd), done: make(chan struct{}),
		held: map[string]holder{}, health: health.NewServer(), binding: belongs}
	l.grpc = grpc.NewServer(l.options()...)
	pb.RegisterNodeServiceServer(l.grpc, l)
	// Health is for probes, which know no token: unary, and without the interceptor.
	healthpb.RegisterHealthServer(l.grpc, l.health)
	l.health.SetServingStatus("", healthpb.HealthCheckResponse_SERVING)
	l.http = &http.Server{Handler: l.routes(), ReadHeaderTimeout: helloTimeout, IdleTimeout: time.Minute,
		MaxHeaderBytes: maxHeaders, ErrorLog: log.New(io.Discard, "", 0),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) }}
	l.mux = newProtocolMux(socket, opts.Security.TLS)
	if opts.Identity != nil {
		l.mux.onRejected = opts.Identity.HandshakeRejected
	}
	l.serves.Go(func() { _ = l.grpc.Serve(l.mux.rpc) })
	l.serves.Go(func() { _ = l.http.Serve(l.mux.http) })
	l.serves.Go(l.mux.run)
	return l, nil
}

// options bound what whoever reaches the port may take, and tell servers from strangers.
func (l *Listener) options() []grpc.ServerOption {
	admit := func(ctx context.Context, method string) error {
		if strings.HasPrefix(method, healthMethods) {
			return nil // for probes, which have neither a token nor a certificate
		}
		md, _ := metadata.FromIncomingContext(ctx)
		return l.admit(ctx, strings.Join(md.Get(authorization), ""))
	}
	return []grpc.ServerOption{
		grpc.Creds(peerCredentials{insecure.NewCredentials()}),
		grpc.MaxRecvMsgSize(protocol.MaxMessage),
		grpc.ConnectionTimeout(helloTimeout),
		grpc.MaxConcurrentStreams(maxCalls),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveTime, Timeout: keepaliveTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minKeepalive, PermitWithoutStream: true}),
		// Before the message of a call is read, which may be large.
		grpc.InTapHandle(func(ctx context.Context, call *tap.Info) (context.Context, error) {
			return ctx, admit(ctx, call.FullMethodName)
		}),
		grpc.UnaryInterceptor(func(ctx context.Context, r any, info *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
			if err := admit(ctx, info.FullMethod); err != nil {
				return nil, err
			}
			return h(ctx, r)
		}),
		grpc.StreamInterceptor(func(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, h grpc.StreamHandler) error {
			if err := admit(s.Context(), info.FullMethod); err != nil {
				return err
			}
			return h(srv, s)
		}),
	}
}

// mostCalls is how many calls a connection may have at a time, mostHeaders how large the
// headers of one may be.
const (
	maxCalls   = 32
	maxHeaders = 16 << 10
)

const healthMethods = "/grpc.health.v1.Health/"

// helloTimeout is how long somebody who connects may take to say what it wants.
const helloTimeout = 5 * time.Second

// Addr is the address that is listened on.
func (l *Listener) Addr() net.Addr { return l.socket.Addr() }

// Draining tells health checks that the node takes no new work.
func (l *Listener) Draining() {
	l.health.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
}

// Accept implements protocol.Listener.
func (l *Listener) Accept(ctx context.Context) (protocol.NodeEnd, error) {
	select {
	case e := <-l.accept:
		return e, nil
	case <-l.done:
		return nil, protocol.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Serve implements protocol.Listener.
func (l *Listener) Serve(parts protocol.Parts) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.served = parts
}

func (l *Listener) parts() protocol.Parts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.served
}

// Close ends the stream and stops listening, within a few seconds.
func (l *Listener) Close() error {
	l.closed.Do(func() {
		close(l.done)
		l.health.Shutdown()
		l.mu.Lock()
		held := slices.Collect(maps.Values(l.held))
		l.mu.Unlock()
		var closing sync.WaitGroup
		for _, h := range held {
			if h.end != nil {
				closing.Go(func() { _ = h.end.Close() })
			}
		}
		closing.Wait()
		_ = l.mux.Close()
		l.grpc.Stop()
		_ = l.http.Close()
	})
	l.serves.Wait()
	return nil
}

// Control implements the service: one stream at a time of each server, its latest.
func (l *Listener) Control(s grpc.BidiStreamingServer[pb.ToNode, pb.FromNode]) error {
	if who := l.opts.Identity; who != nil && !who.Joined() {
		return status.Error(codes.FailedPrecondition, pki.ErrJoining.Error())
	}
	open, err := l.opened(s)
	if err != nil {
		return err
	}
	out, err := l.binding.admit(open)
	if err != nil {
		return err
	}
	defer out()
	// Returning ends the stream: cut breaks it, finish is what follows the last message.
	broken, finished := make(chan struct{}), make(chan struct{})
	process := open.GetServerProcess()
	h := holder{link: open.GetLink(), session: open.GetSession(), gone: make(chan struct{}), at: time.Now()}
	defer close(h.gone)
	begin := func() *nodeEnd {
		return newEnd[protocol.FromNode, protocol.ToNode](s, piecesFromWire, toNode, sync.OnceFunc(func() { close(broken) }),
			func() { close(finished) })
	}
	e, err := l.claimStream(process, h, begin)
	if err != nil {
		return err
	}
	defer l.leave(process)
	if err := s.SendHeader(metadata.Pairs(admitted, "1")); err != nil {
		return err
	}
	select {
	case l.accept <- peerEnd{e, process}:
	case <-e.over:
	case <-broken:
	case <-l.done:
		e.cut()
	}
	select {
	case <-finished:
	case <-e.over:
	case <-s.Context().Done(): // over may be later: where nobody receives what came last
	case <-broken:
		return status.Error(codes.Aborted, "the node has ended the stream")
	}
	return nil
}

// opened reads the first message, which says who opens the stream.
func (l *Listener) opened(s grpc.BidiStreamingServer[pb.ToNode, pb.FromNode]) (*pb.Open, error) {
	first := make(chan *pb.Open, 1)
	go func() {
		m, _ := s.Recv()
		first <- m.GetOpen() // room: for the first message
	}()
	limit := time.NewTimer(helloTimeout)
	defer limit.Stop()
	select {
	case open := <-first:
		if open == nil {
			return nil, status.Error(codes.InvalidArgument, "a stream begins with Open")
		}
		if err := l.checkVersion(open); err != nil {
			l.opts.Log.Error().Err(err).Msg("a server is not let in")
			return nil, status.Error(codes.FailedPrecondition, err.Error())
		}
		return open, nil
	case <-limit.C:
		return nil, status.Error(codes.DeadlineExceeded, "a stream begins with Open, and none came")
	}
}

// checkVersion says that a server does not work with this node, where the server does not find out itself.
func (l *Listener) checkVersion(open *pb.Open) error {
	if open.GetProtocol() > 0 {
		return nil
	}
	return version.Check(version.Build{Version: open.GetServerVersion()},
		version.Build{Version: l.opts.Version, Protocol: version.Protocol})
}

// claimStream makes the stream that of the server's process, in place of an older one of it.
func (l *Listener) claimStream(process string, h holder, begin func() *nodeEnd) (*nodeEnd, error) {
	for {
		l.mu.Lock()
		old, known := l.held[process]
		switch {
		case known && h.session <= old.session:
			l.mu.Unlock()
			return nil, status.Error(codes.FailedPrecondition, "a later stream of the server has been opened")
		case old.end == nil:
			if old.left != nil {
				old.left.abandon()
			}
			if !known && len(l.held) >= maxHolders && !l.forget() {
				l.mu.Unlock()
				return nil, status.Error(codes.ResourceExhausted, "too many servers have a stream to this node")
			}
			h.end = begin()
			l.held[process] = h
			l.mu.Unlock()
			return h.end, nil
		case old.link != h.link:
			l.mu.Unlock()
			return nil, status.Error(codes.AlreadyExists, "this server has a stream to it by "+old.link)
		}
		l.mu.Unlock()
		old.end.abandon()
		<-old.gone
	}
}

// forget makes room for a server's process: the one whose stream ended and began first is
// forgotten. It needs mu.
func (l *Listener) forget() bool {
	oldest := ""
	for process, h := range l.held {
		if h.end == nil && (oldest == "" || h.at.Before(l.held[oldest].at)) {
			oldest = process
		}
	}
	_, found := l.held[oldest]
	delete(l.held, oldest)
	return found
}

// leave gives the stream up; which was a server's last stays known.
func (l *Listener) leave(process string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.held[process]
	h.end, h.left = nil, h.end
	l.held[process] = h
}

// PutPlugin implements the service.
func (l *Listener) PutPlugin(s grpc.ClientStreamingServer[pb.PutPluginRequest, pb.PutPluginResponse]) error {
	var sum string
	var wasm bytes.Buffer
	for {
		r, err := s.Recv()
		if err != nil {
			break
		}
		if sum == "" {
			sum = r.GetSha256()
		}
		if wasm.Len()+len(r.GetChunk()) > maxPlugin {
			return status.Error(codes.ResourceExhausted, "the plugin is larger than plugins may be")
		}
		wasm.Write(r.GetChunk())
	}
	got := sha256.Sum256(wasm.Bytes())
	if hex.EncodeToString(got[:]) != sum {
		return status.Error(codes.DataLoss, "the plugin is not what was announced (SHA-256)")
	}
	if err := l.opts.Plugin(s.Context(), wasm.Bytes()); err != nil {
		return status.Error(codes.FailedPrecondition, err.Error())
	}
	return s.SendAndClose(&pb.PutPluginResponse{})
}

// maxPlugin bounds a module, in bytes.
const maxPlugin = 64 << 20

// routes are what is served over HTTP: the parts of records, and probes.
func (l *Listener) routes() http.Handler {
	mux := http.NewServeMux()
	alive := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) }
	mux.HandleFunc("GET /livez", alive)
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		answer, err := l.health.Check(r.Context(), &healthpb.HealthCheckRequest{})
		if err != nil || answer.GetStatus() != healthpb.HealthCheckResponse_SERVING {
			http.Error(w, "draining", http.StatusServiceUnavailable)
			return
		}
		alive(w, r)
	})
	mux.HandleFunc("GET "+protocol.PartsPath, func(w http.ResponseWriter, r *http.Request) {
		if err := l.admit(r.Context(), r.Header.Get(authorization)); err != nil {
			http.Error(w, status.Convert(err).Message(), http.StatusUnauthorized)
			return
		}
		// What is not announced is not there, whatever the path says.
		f, err := l.parts().Open(strings.TrimPrefix(r.URL.Path, protocol.PartsPath))
		if err != nil {
			status := http.StatusInternalServerError
			if errors.Is(err, os.ErrNotExist) {
				status = http.StatusNotFound
			}
			http.Error(w, "the part cannot be read", status)
			return
		}
		defer func() { _ = f.Close() }()
		w.Header().Set("Content-Type", "application/vnd.apache.parquet")
		http.ServeContent(w, r, "", time.Time{}, f)
	})
	return mux
}

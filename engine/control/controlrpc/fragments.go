package controlrpc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/loadstone-db/loadstone/engine/control"
	pb "github.com/loadstone-db/loadstone/engine/control/controlpb"
	"github.com/loadstone-db/loadstone/engine/control/nodecert"
)

// serverHeader names the process of the server that calls: its stream says whether it is one that the node works for.
const serverHeader = "loadstone-server"

// rowsWindow is how many bytes of rows may be on their way of one fragment: the memory of a consumer that is busy.
const rowsWindow = 1 << 20

func keyToWire(k control.FragmentKey) *pb.FragmentKey {
	return &pb.FragmentKey{QueryId: k.QueryID, Epoch: k.Epoch, Attempt: k.Attempt}
}

func keyFromWire(k *pb.FragmentKey) control.FragmentKey {
	return control.FragmentKey{QueryID: k.GetQueryId(), Epoch: k.GetEpoch(), Attempt: k.GetAttempt()}
}

// words is either end of a call by which a fragment runs. It implements control.FragmentLink.
type words struct {
	in   chan control.FragmentWord
	out  chan sending
	over chan struct{} // nothing more comes
	done chan struct{} // closed by Close
	once sync.Once
	cut  func()
}

// sending is a word with what became of it.
type sending struct {
	word *pb.FragmentWord
	sent chan error
}

// newWords begins to read and to write, with what the call receives and sends; cut ends it.
func newWords(receive func() (*pb.FragmentWord, error), send func(*pb.FragmentWord) error, cut func()) *words {
	l := &words{in: make(chan control.FragmentWord), out: make(chan sending), over: make(chan struct{}),
		done: make(chan struct{}), cut: cut}
	go func() {
		defer close(l.over)
		for {
			w, err := receive()
			if err != nil {
				return
			}
			select {
			case l.in <- control.FragmentWord{Kind: w.GetKind(), Body: w.GetBody()}:
			case <-l.done:
				return
			}
		}
	}()
	go func() {
		for {
			select {
			case s := <-l.out:
				s.sent <- send(s.word) // room: for one
			case <-l.done:
				return
			case <-l.over:
				return
			}
		}
	}()
	return l
}

// Send implements control.FragmentLink.
func (l *words) Send(ctx context.Context, w control.FragmentWord) error {
	s := sending{&pb.FragmentWord{Kind: w.Kind, Body: w.Body}, make(chan error, 1)}
	select {
	case l.out <- s:
	case <-l.done:
		return control.ErrFragmentLost
	case <-l.over:
		return control.ErrFragmentLost
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-s.sent:
		if err != nil {
			return fmt.Errorf("%w: %w", control.ErrFragmentLost, plainly(err))
		}
		return nil
	case <-l.done:
		return control.ErrFragmentLost
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Receive implements control.FragmentLink.
func (l *words) Receive(ctx context.Context) (control.FragmentWord, error) {
	select {
	case w := <-l.in:
		return w, nil
	case <-l.over:
		return control.FragmentWord{}, control.ErrFragmentLost
	case <-l.done:
		return control.FragmentWord{}, control.ErrFragmentLost
	case <-ctx.Done():
		return control.FragmentWord{}, ctx.Err()
	}
}

// Close implements control.FragmentLink.
func (l *words) Close() error {
	l.once.Do(func() { close(l.done); l.cut() })
	return nil
}

// RunFragment implements control.FragmentRunner. Each fragment has a connection of its own: one whose rows are waited
// for holds up neither another one nor the heartbeat.
func (e *serverEnd) RunFragment(ctx context.Context, k control.FragmentKey, spec []byte) (control.FragmentLink,
	error) {
	d := e.dialer
	conn, err := d.newConn(d.rowsCredentials(), grpc.WithReadBufferSize(64<<10), grpc.WithWriteBufferSize(64<<10),
		grpc.WithInitialWindowSize(rowsWindow), grpc.WithInitialConnWindowSize(rowsWindow))
	if err != nil {
		return nil, err
	}
	if !d.fragments.add(conn) {
		_ = conn.Close()
		return nil, control.ErrClosed
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	cut := func() { end(); d.fragments.remove(conn); _ = conn.Close() }
	stopped := context.AfterFunc(ctx, end)
	s, err := pb.NewNodeServiceClient(conn).RunFragment(d.named(life))
	if err == nil {
		err = s.Send(&pb.RunFragmentRequest{Key: keyToWire(k), SpecJson: spec})
	}
	if !stopped() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		cut()
		return nil, fmt.Errorf("giving a node a fragment: %w", plainly(err))
	}
	return newWords(func() (*pb.FragmentWord, error) { r, err := s.Recv(); return r.GetWord(), err },
		func(w *pb.FragmentWord) error { return s.Send(&pb.RunFragmentRequest{Word: w}) }, cut), nil
}

// named says which server calls.
func (d *Dialer) named(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, serverHeader, d.opts.Process)
}

// StopFragment implements control.FragmentRunner.
func (e *serverEnd) StopFragment(ctx context.Context, k control.FragmentKey) error {
	_, err := e.dialer.client.StopFragment(e.dialer.named(ctx), &pb.StopFragmentRequest{Key: keyToWire(k)})
	if status.Code(err) == codes.Unimplemented {
		return nil // an older node has none
	}
	if err != nil {
		return fmt.Errorf("ending a fragment on a node: %w", plainly(err))
	}
	return nil
}

// ListFragments implements control.FragmentRunner.
func (e *serverEnd) ListFragments(ctx context.Context, process string, since int64) (control.FragmentList, error) {
	r, err := e.dialer.client.ListFragments(e.dialer.named(ctx), &pb.ListFragmentsRequest{Process: process, Since: since})
	if status.Code(err) == codes.Unimplemented {
		return control.FragmentList{All: true}, nil
	}
	if err != nil {
		return control.FragmentList{}, fmt.Errorf("listing the fragments of a node: %w", plainly(err))
	}
	l := control.FragmentList{Process: r.GetProcess(), Sequence: r.GetSequence(), All: r.GetAll()}
	for _, k := range r.GetRunning() {
		l.Running = append(l.Running, keyFromWire(k))
	}
	for _, k := range r.GetGone() {
		l.Gone = append(l.Gone, keyFromWire(k))
	}
	return l, nil
}

// rowsCredentials are those of connections for fragments, which lead to the node of the stream only.
func (d *Dialer) rowsCredentials() credentials.TransportCredentials {
	switch {
	case d.opts.Trust != nil:
		return credentials.NewTLS(d.rowsTLS())
	case d.opts.Security.TLS != nil:
		return credentials.NewTLS(d.opts.Security.TLS)
	}
	return insecure.NewCredentials()
}

// rowsTLS believes the node of the stream that stands.
func (d *Dialer) rowsTLS() *tls.Config {
	return nodecert.ClientTLS(d.opts.Trust.Certificate, func(shown []*x509.Certificate) error {
		who, err := d.opts.Trust.Node(shown)
		d.trusted.mu.Lock()
		defer d.trusted.mu.Unlock()
		if err == nil && who.ID != d.trusted.who.ID {
			err = fmt.Errorf("%s answers, and the stream leads to %s", who.ID, d.trusted.who.ID)
		}
		return err
	})
}

// rowConns are the connections of the fragments on a node.
type rowConns struct {
	mu     sync.Mutex
	open   map[*grpc.ClientConn]bool
	closed bool
}

func (c *rowConns) add(conn *grpc.ClientConn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[*grpc.ClientConn]bool{}
	}
	c.open[conn] = true
	return !c.closed
}

func (c *rowConns) remove(conn *grpc.ClientConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, conn)
}

// drop ends all of them; over: none is opened any more.
func (c *rowConns) drop(over bool) {
	c.mu.Lock()
	c.closed = c.closed || over
	open := c.open
	c.open = nil
	c.mu.Unlock()
	for conn := range open {
		_ = conn.Close()
	}
}

// worksFor says why a server's fragments are not this node's: it has to have a stream, which says whose nodes these are.
func (l *Listener) worksFor(ctx context.Context) error {
	if l.opts.Fragments == nil {
		return status.Error(codes.Unimplemented, "this node runs no fragments")
	}
	md, _ := metadata.FromIncomingContext(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if h, known := l.held[strings.Join(md.Get(serverHeader), "")]; !known || h.end == nil {
		return status.Error(codes.FailedPrecondition, "the server has no stream to this node")
	}
	return nil
}

// RunFragment implements the service.
func (l *Listener) RunFragment(s grpc.BidiStreamingServer[pb.RunFragmentRequest, pb.RunFragmentResponse]) error {
	if err := l.worksFor(s.Context()); err != nil {
		return err
	}
	first, err := s.Recv()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	link := newWords(func() (*pb.FragmentWord, error) { r, err := s.Recv(); return r.GetWord(), err },
		func(w *pb.FragmentWord) error { return s.Send(&pb.RunFragmentResponse{Word: w}) }, cancel)
	defer func() { _ = link.Close() }()
	l.opts.Fragments.Run(ctx, keyFromWire(first.GetKey()), first.GetSpecJson(), link)
	return nil
}

// StopFragment implements the service.
func (l *Listener) StopFragment(ctx context.Context, r *pb.StopFragmentRequest) (*pb.StopFragmentResponse, error) {
	if err := l.worksFor(ctx); err != nil {
		return nil, err
	}
	if err := l.opts.Fragments.Stop(ctx, keyFromWire(r.GetKey())); err != nil {
		return nil, status.Error(codes.DeadlineExceeded, "the fragment has not ended")
	}
	return &pb.StopFragmentResponse{}, nil
}

// ListFragments implements the service.
func (l *Listener) ListFragments(ctx context.Context, r *pb.ListFragmentsRequest) (*pb.ListFragmentsResponse, error) {
	if err := l.worksFor(ctx); err != nil {
		return nil, err
	}
	list := l.opts.Fragments.List(r.GetProcess(), r.GetSince())
	w := &pb.ListFragmentsResponse{Process: list.Process, Sequence: list.Sequence, All: list.All}
	for _, k := range list.Running {
		w.Running = append(w.Running, keyToWire(k))
	}
	for _, k := range list.Gone {
		w.Gone = append(w.Gone, keyToWire(k))
	}
	return w, nil
}

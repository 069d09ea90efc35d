package rpc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/loadstone-db/loadstone/engine/cluster/pki"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/rpc/pb"
)

// serverHeader names the process of the server that calls: its stream says whether it is one that the node works for.
const serverHeader = "loadstone-server"

// RunFragment implements protocol.FragmentRunner. Each fragment has a connection of its own: one whose rows are waited
// for holds up neither another one nor the heartbeat.
func (e *serverEnd) RunFragment(ctx context.Context, k protocol.FragmentKey, spec []byte) (protocol.FragmentLink,
	error) {
	conn, err := e.dialer.newConn(e.dialer.rowsCredentials(), Options()...)
	if err != nil {
		return nil, err
	}
	return Run(e.dialer.withServerName(ctx), conn, &e.dialer.fragments, k, spec)
}

// StopFragment implements protocol.FragmentRunner.
func (e *serverEnd) StopFragment(ctx context.Context, k protocol.FragmentKey) error {
	return Stop(e.dialer.withServerName(ctx), e.dialer.client, k)
}

// ListFragments implements protocol.FragmentRunner.
func (e *serverEnd) ListFragments(ctx context.Context, process string, since int64) (protocol.FragmentList, error) {
	return List(e.dialer.withServerName(ctx), e.dialer.client, process, since)
}

// withServerName says which server calls.
func (d *Dialer) withServerName(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, serverHeader, d.opts.Process)
}

// rowsCredentials are those of connections for fragments, which lead to the node of the stream only.
func (d *Dialer) rowsCredentials() credentials.TransportCredentials {
	switch {
	case d.opts.Trust != nil:
		return credentials.NewTLS(d.streamTLS())
	case d.opts.Security.TLS != nil:
		return credentials.NewTLS(d.opts.Security.TLS)
	}
	return insecure.NewCredentials()
}

// streamTLS believes the node of the stream that stands.
func (d *Dialer) streamTLS() *tls.Config {
	return pki.ClientTLS(d.opts.Trust.Certificate, func(shown []*x509.Certificate) error {
		who, err := d.opts.Trust.Node(shown)
		d.trusted.mu.Lock()
		defer d.trusted.mu.Unlock()
		if err == nil && who.ID != d.trusted.who.ID {
			err = fmt.Errorf("%s answers, and the stream leads to %s", who.ID, d.trusted.who.ID)
		}
		return err
	})
}

// checkStore says why the fragments of a server are not for this node: it has to have a stream, which says whose node
// this is.
func (l *Listener) checkStore(ctx context.Context) error {
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
	if err := l.checkStore(s.Context()); err != nil {
		return err
	}
	return Serve(s, l.opts.Fragments)
}

// StopFragment implements the service.
func (l *Listener) StopFragment(ctx context.Context, r *pb.StopFragmentRequest) (*pb.StopFragmentResponse, error) {
	if err := l.checkStore(ctx); err != nil {
		return nil, err
	}
	return ServeStop(ctx, r, l.opts.Fragments)
}

// ListFragments implements the service.
func (l *Listener) ListFragments(ctx context.Context, r *pb.ListFragmentsRequest) (*pb.ListFragmentsResponse, error) {
	if err := l.checkStore(ctx); err != nil {
		return nil, err
	}
	return ServeList(r, l.opts.Fragments), nil
}

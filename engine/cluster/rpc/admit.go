package rpc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/pki"
	"github.com/loadstone-db/loadstone/engine/cluster/rpc/pb"
)

// peerInfo is what gRPC knows of a connection that the split has handed on.
type peerInfo struct {
	credentials.CommonAuthInfo
	conn *peekedConn
}

// AuthType implements credentials.AuthInfo.
func (peerInfo) AuthType() string { return "split" }

// peerCredentials are the credentials of a server whose connections the split has secured.
type peerCredentials struct {
	credentials.TransportCredentials
}

func (a peerCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	info := peerInfo{CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}}
	if peeked, ok := conn.(*peekedConn); ok {
		info.conn = peeked
	}
	return conn, info, nil
}

func (a peerCredentials) Clone() credentials.TransportCredentials { return a }

// connKey is where the context of a request over HTTP has its connection.
type connKey struct{}

// caller is the connection of a call, over gRPC or HTTP.
func caller(ctx context.Context) *peekedConn {
	if p, ok := peer.FromContext(ctx); ok {
		if a, ok := p.AuthInfo.(peerInfo); ok {
			return a.conn
		}
	}
	conn, _ := ctx.Value(connKey{}).(*peekedConn)
	return conn
}

// shown are the certificates of who has connected.
func (c *peekedConn) shown() []*x509.Certificate {
	if secured, ok := c.Conn.(*tls.Conn); ok {
		return secured.ConnectionState().PeerCertificates
	}
	return nil
}

// admit refuses a call of somebody who is not a server of this node. Who has been admitted is
// no stranger any more.
func (l *Listener) admit(ctx context.Context, authorization string) error {
	conn := caller(ctx)
	if conn == nil {
		return status.Error(codes.Internal, "the call has no connection")
	}
	if l.opts.Identity != nil && len(conn.shown()) == 0 {
		return status.Error(codes.Unauthenticated, "this node answers servers with a certificate of their authority only")
	}
	if !l.opts.Security.knows(authorization) {
		return status.Error(codes.Unauthenticated, "the token is not that of this node")
	}
	l.mux.unauthenticated.authenticated(conn)
	return nil
}

// RequestCertificate implements the service.
func (l *Listener) RequestCertificate(ctx context.Context, _ *pb.RequestCertificateRequest) (
	*pb.RequestCertificateResponse, error) {
	if l.opts.Identity == nil {
		return nil, status.Error(codes.FailedPrecondition, "this node has the certificates that its operator gave it")
	}
	a, err := l.opts.Identity.CertificateRequest(caller(ctx).shown())
	if err != nil {
		return nil, status.Error(codes.PermissionDenied, err.Error())
	}
	return &pb.RequestCertificateResponse{Request: a.Request, TokenId: a.TokenID, TokenSecret: a.Proof}, nil
}

// InstallCertificate implements the service.
func (l *Listener) InstallCertificate(ctx context.Context, r *pb.InstallCertificateRequest) (
	*pb.InstallCertificateResponse, error) {
	if r.GetRefusal() != "" {
		l.opts.Log.Error().Str("hint", r.GetHint()).Msg("a server refuses this node: " + r.GetRefusal())
		return &pb.InstallCertificateResponse{}, nil
	}
	who := l.opts.Identity
	if who == nil {
		return nil, status.Error(codes.FailedPrecondition, "this node has the certificates that its operator gave it")
	}
	joined := who.Joined()
	if err := who.Install(caller(ctx).shown(), r.GetCertificate(), r.GetAuthority()); err != nil {
		l.opts.Log.Error().Err(err).Msg("the certificate that a server has brought cannot be used")
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	what := "the node's certificate was renewed"
	if !joined {
		what = "the node has joined"
	}
	l.opts.Log.Info().Time("not_after", who.NotAfter()).Msg(what)
	return &pb.InstallCertificateResponse{}, nil
}

// LogRejected says in a log why somebody who connected was not let in, in words for operators.
func LogRejected(err error) *engine.Error {
	e := &engine.Error{Code: engine.CodeForbidden, Cause: err,
		Message: "A server was not let in: " + err.Error() + "."}
	switch {
	case errors.Is(err, pki.ErrForeign):
		e.Hint = "To join that server: loadstone node token there, and start this node with --join."
	case errors.Is(err, pki.ErrExpired):
		e.Hint = "Set the clocks of both machines."
	case errors.Is(err, pki.ErrCertificateRejected):
		e.Message = "A server has gone away: " + err.Error() + "."
		e.Hint = "Start this node with --join and a new token: loadstone node token on the server."
	case errors.Is(err, pki.ErrRole):
		e.Hint = "Nodes are dialled by servers, and by no other node."
	}
	return e
}

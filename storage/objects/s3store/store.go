// Package s3store keeps the files of runs in S3-compatible storage.
//
// A file is one object, BUCKET/PREFIX/RUN/NAME, written once under the condition that
// nothing has its name. Large ones go up in parts with checksums; what a broken upload
// left is found by listing it, so that a restarted server goes on where it stopped.
// The object carries the SHA-256 of the whole and of its blocks as metadata. Reads ask
// for blocks, check each against its sum, and keep them in a bounded cache on disk.
package s3store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/storage/objects"
)

// Options say how storage is used.
type Options struct {
	// CacheDir is where blocks that were read are kept, at most CacheBytes of them, with Room left beside them.
	CacheDir   string
	CacheBytes int64
	FreeSpace  func() error
	Log        zerolog.Logger

	// Attempts is how often a request is made at most, with growing pauses of at most Pause; Idle is how long
	// nothing may come or go. Zeros are 8, 10 s and 30 s.
	Attempts         int
	RetryDelay, Idle time.Duration
	// PartBytes is how much goes up at once, for 0 8 MiB; other servers than those of tests take no less than 5 MiB.
	PartBytes int64
}

// Store implements objects.Store.
type Store struct {
	address Address
	opts    Options
	client  *s3.Client
	cache   *cache
	// down is set while nobody answers: then requests are made once.
	down atomic.Bool
	// unconditional is set where the server does not know conditions of writes.
	unconditional atomic.Bool

	mu          sync.Mutex
	swept       time.Time
	objectInfos map[string]*objectInfo // what objects are, by key
}

var _ objects.Store = (*Store)(nil)

const (
	minPartBytes      = 8 << 20
	maxParts          = 9000
	concurrentUploads = 4 // parts of one file at a time
	retryTimeout      = 3 * time.Minute
	minBytesPerSecond = 256 << 10 // bytes in a second
)

// Open returns the store at the address after it has written, read and deleted an object there.
func Open(ctx context.Context, address Address, opts Options) (*Store, error) {
	if opts.Attempts == 0 {
		opts.Attempts = 8
	}
	if opts.RetryDelay == 0 {
		opts.RetryDelay = 10 * time.Second
	}
	if opts.Idle == 0 {
		opts.Idle = 30 * time.Second
	}
	if opts.PartBytes == 0 {
		opts.PartBytes = minPartBytes
	}
	if opts.FreeSpace == nil {
		opts.FreeSpace = func() error { return nil }
	}
	if e, err := url.Parse(address.Endpoint); err == nil && egress.IsForbiddenHost(e.Hostname()) {
		return nil, egress.InvalidFlag("--results", e.Hostname())
	}
	s := &Store{address: address, opts: opts, objectInfos: map[string]*objectInfo{}}
	cfg, err := s.configure(ctx)
	if err != nil {
		return nil, err
	}
	s.client = s3.NewFromConfig(cfg, func(o *s3.Options) {
		// What keys are asked for is another matter: machines have theirs at such an address.
		o.HTTPClient, o.UsePathStyle = s.transport(egress.Unrestricted().Dial), !address.HostStyle
		if address.Endpoint != "" {
			o.BaseEndpoint = aws.String(address.Endpoint)
		}
	})
	if s.cache, err = openCache(opts.CacheDir, opts.CacheBytes, opts.FreeSpace, opts.Log); err != nil {
		return nil, err
	}
	if err := s.checkAccess(ctx); err != nil {
		return nil, err
	}
	if e, err := url.Parse(address.Endpoint); err == nil && e.Scheme == "http" && !loopback(e.Hostname()) {
		opts.Log.Warn().Str("results", address.String()).
			Msg("results go to their storage unencrypted: the endpoint is http://")
	}
	s.sweep(ctx)
	return s, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// transport is how requests are sent, over connections that dial makes.
func (s *Store) transport(dial func(ctx context.Context, network, address string) (net.Conn, error),
) *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTransportOptions(func(tr *http.Transport) {
		tr.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, min(s.opts.Idle, 10*time.Second))
			defer cancel()
			conn, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &idleTimeoutConn{conn, s.opts.Idle}, nil
		}
		tr.MaxIdleConnsPerHost = 32
	})
}

// configure takes the region and the credentials from where every tool of that cloud takes them.
func (s *Store) configure(ctx context.Context) (aws.Config, error) {
	retryer := func() aws.Retryer {
		return retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts, o.MaxBackoff, o.RateLimiter = s.opts.Attempts, s.opts.RetryDelay, ratelimit.None
			o.Backoff = retry.NewExponentialJitterBackoff(s.opts.RetryDelay)
		})
	}
	anywhere := s.transport((&net.Dialer{KeepAlive: 30 * time.Second}).DialContext)
	cfg, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(anywhere), config.WithRetryer(retryer),
		config.WithLogger(logging.Nop{}), func(o *config.LoadOptions) error {
			o.Region = s.address.Region
			return nil
		})
	if err != nil {
		return cfg, &engine.Error{Code: engine.CodeInvalid, Cause: err,
			Hint:    "Check AWS_PROFILE and the files that it names.",
			Message: "The results storage cannot be used: the configuration of its credentials cannot be read."}
	}
	if cfg.Region == "" {
		if s.address.Endpoint == "" {
			return cfg, &engine.Error{Code: engine.CodeInvalid, Message: "The results storage cannot be used: its region is " +
				"not known.", Hint: "Name it: --results s3://…?region=REGION, or AWS_REGION."}
		}
		cfg.Region = "us-east-1"
	}
	requested, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	if cfg.Credentials == nil {
		return cfg, noCredentials(errors.New("there is no chain of credentials"))
	}
	if _, err := cfg.Credentials.Retrieve(requested); err != nil {
		return cfg, noCredentials(err)
	}
	return cfg, nil
}

func noCredentials(err error) error {
	return &engine.Error{Code: engine.CodeInvalid, Cause: err,
		Message: "The results storage cannot be used: no credentials for it were found.",
		Hint: "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give the machine or the pod a role; " +
			"they are never part of --results."}
}

// idleTimeoutConn is a connection that ends when nothing came or went for a while. What
// is sent keeps the wait for the answer alive too.
type idleTimeoutConn struct {
	net.Conn
	idle time.Duration
}

func (c *idleTimeoutConn) Read(b []byte) (int, error) {
	_ = c.SetReadDeadline(time.Now().Add(c.idle)) // a closed one says so when it is read
	return c.Conn.Read(b)
}

func (c *idleTimeoutConn) Write(b []byte) (int, error) {
	_ = c.SetDeadline(time.Now().Add(c.idle)) // a closed one says so when it is written
	return c.Conn.Write(b)
}

// withTransferTimeout bounds the time for so many bytes, with all attempts.
func (s *Store) withTransferTimeout(ctx context.Context, size int64) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, retryTimeout+time.Duration(size/minBytesPerSecond)*time.Second)
}

// singleAttemptWhenDown makes one attempt do while nobody answers, so that a long list of parts does not wait for each.
func (s *Store) singleAttemptWhenDown(o *s3.Options) {
	if s.down.Load() {
		o.RetryMaxAttempts = 1
	}
}

// noteOutcome learns from an answer whether somebody is there.
func (s *Store) noteOutcome(err error) error {
	s.down.Store(err != nil && unreachable(err))
	return err
}

// pause waits before the next attempt, longer after each; it returns whether ctx goes on.
func (s *Store) pause(ctx context.Context, attempt int) bool {
	length := min(s.opts.RetryDelay, 100*time.Millisecond<<min(attempt, 10))
	select {
	case <-time.After(length/2 + rand.N(length/2+1)):
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *Store) key(runID, name string) string { return s.address.path() + runID + "/" + name }

// Location implements objects.Store.
func (s *Store) Location(runID string) string {
	return scheme + s.address.Bucket + "/" + s.address.path() + runID
}

// ID implements objects.Store.
func (s *Store) ID() (position, label string, err error) { return s.String(), s.String(), nil }

// String is the address, for people.
func (s *Store) String() string { return s.address.String() }

func opError(doing, name string) string { return fmt.Sprintf("%s the part %s", doing, name) }

package s3store

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/objects"
)

// A file is read and checked by blocks: few enough for their sums to be metadata of the object.
const (
	maxBlocks     = 64
	minBlockBytes = 128 << 10
	blockStep     = 64 << 10
	sumBytes      = 16      // of a block's SHA-256
	maxReadAhead  = 8 << 20 // bytes that are asked for at once
	maxCachedInfo = 4096
)

func blockSize(size int64) int64 {
	block := max((size+maxBlocks-1)/maxBlocks, minBlockBytes)
	return (block + blockStep - 1) / blockStep * blockStep
}

// objectInfo is what an object is.
type objectInfo struct {
	size         int64
	sha256, etag string
	block        int64
	sums         []byte
}

// headObject asks what the object is; isAbsent tells of the error that there is none.
func (s *Store) headObject(ctx context.Context, key string) (*objectInfo, error) {
	head, err := s.client.HeadObject(
		ctx,
		&s3.HeadObjectInput{Bucket: &s.address.Bucket, Key: &key},
		s.singleAttemptWhenDown,
	)
	if s.noteOutcome(err) != nil {
		return nil, err
	}
	i := &objectInfo{
		size:   aws.ToInt64(head.ContentLength),
		etag:   aws.ToString(head.ETag),
		sha256: head.Metadata[metaSHA256],
	}
	stated := strings.Split(head.Metadata[metaBlocks], ".")
	if len(stated) == 3 && stated[0] == strconv.FormatInt(i.size, 10) {
		i.block, _ = strconv.ParseInt(stated[1], 10, 64)          // 0 is refused below
		i.sums, _ = base64.RawURLEncoding.DecodeString(stated[2]) // so are sums that are cut off
	}
	if i.block < blockStep || i.block%blockStep != 0 || int64(len(i.sums)) != (i.size+i.block-1)/i.block*sumBytes {
		i.sums = nil // somebody else has put it there, or has cut it off
	}
	return i, nil
}

// Open implements objects.Store.
func (s *Store) Open(ctx context.Context, runID, name string) (objects.File, error) {
	if err := objects.CheckNames(runID, name); err != nil {
		return nil, err
	}
	key := s.key(runID, name)
	s.mu.Lock()
	i := s.objectInfos[key]
	s.mu.Unlock()
	if i == nil {
		requested, cancel := s.withTransferTimeout(ctx, 0)
		defer cancel()
		var err error
		if i, err = s.headObject(requested, key); err != nil {
			if isAbsent(err) {
				return nil, fmt.Errorf("opening part %s: %w", name, store.ErrNotFound)
			}
			return nil, s.explain(err, opError("Opening", name))
		}
		if i.sums == nil {
			return nil, damaged(name, "its size and its sums are not those with which Loadstone stores parts")
		}
		s.mu.Lock()
		if len(s.objectInfos) >= maxCachedInfo {
			clear(s.objectInfos)
		}
		s.objectInfos[key] = i
		s.mu.Unlock()
	}
	return &file{s: s, ctx: ctx, runID: runID, name: name, objectInfo: i, next: -1}, nil
}

// forget drops what is known of objects whose key begins so.
func (s *Store) forget(prefix string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.objectInfos {
		if strings.HasPrefix(key, prefix) {
			delete(s.objectInfos, key)
		}
	}
}

func damaged(name, how string) error {
	return &engine.Error{Code: engine.CodeInternal,
		Message: fmt.Sprintf("The part %s is damaged in the results storage: %s.", name, how),
		Hint:    "Restore the object from a copy, or delete the run; the figures of the run are kept apart from it.",
		Cause:   store.ErrDamaged}
}

// file is an object that is read by blocks.
type file struct {
	s           *Store
	ctx         context.Context //nolint:containedctx // a read at an offset has no context of its own
	runID, name string
	*objectInfo

	mu    sync.Mutex
	first int64 // number of the first block in held
	held  []byte
	next  int64 // the block behind those that were asked for last
	ahead int64
}

func (f *file) Size() int64  { return f.size }
func (f *file) Close() error { return nil }

// ReadAt implements io.ReaderAt.
func (f *file) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, errors.New("reading before the beginning of a part")
	}
	for n < len(p) && off < f.size {
		got, err := f.readHeld(p[n:], off)
		n, off = n+got, off+int64(got)
		if err != nil {
			return n, err
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// readHeld reads up to the end of what is held.
func (f *file) readHeld(p []byte, off int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	begin := f.first * f.block
	if off < begin || off >= begin+int64(len(f.held)) {
		if err := f.loadBlock(off / f.block); err != nil {
			return 0, err
		}
		begin = f.first * f.block
	}
	return copy(p, f.held[off-begin:]), nil
}

func (f *file) blocks() int64 { return int64(len(f.sums) / sumBytes) }

// end is the offset behind a block.
func (f *file) end(block int64) int64 { return min((block+1)*f.block, f.size) }

func (f *file) verifyBlock(block int64, b []byte) bool {
	sum := sha256.Sum256(b)
	return string(sum[:sumBytes]) == string(f.sums[block*sumBytes:(block+1)*sumBytes])
}

// loadBlock gets a block: from the cache, or from the storage with some behind it when it
// is read from front to back.
func (f *file) loadBlock(block int64) error {
	if b := f.s.cache.get(f.cached(block)); b != nil && f.verifyBlock(block, b) {
		f.first, f.held, f.next = block, b, block+1
		return nil
	}
	f.ahead = max(f.ahead*2, 1)
	if block != f.next {
		f.ahead = 1
	}
	last := block
	for last+1 < f.blocks() && last+1 < block+f.ahead && (last+2-block)*f.block <= maxReadAhead &&
		!f.s.cache.has(f.cached(last+1)) {
		last++
	}
	b, err := f.fetch(block*f.block, f.end(last))
	if err != nil {
		return f.s.explain(err, opError("Reading", f.name))
	}
	for i := block; i <= last; i++ {
		one := b[(i-block)*f.block : f.end(i)-block*f.block]
		if !f.verifyBlock(i, one) {
			return damaged(f.name, fmt.Sprintf("bytes %d to %d are not those that were stored", i*f.block, f.end(i)-1))
		}
		f.s.cache.put(f.cached(i), one)
	}
	f.first, f.held, f.next = block, b, last+1
	return nil
}

// cached is the name of a block in the cache. A name that was given anew has another sum.
func (f *file) cached(block int64) blockID { return blockID{f.runID, f.name, f.sha256[:16], block} }

// fetch reads a range, again when a body breaks off: that the client does not repeat.
func (f *file) fetch(from, to int64) ([]byte, error) {
	ctx, cancel := f.s.withTransferTimeout(f.ctx, to-from)
	defer cancel()
	b := make([]byte, to-from)
	for attempt := 1; ; attempt++ {
		err := f.attempt(ctx, b, from, to)
		if err == nil {
			return b, nil
		}
		if status(err) != 0 || ctx.Err() != nil || attempt >= f.s.opts.Attempts || f.s.down.Load() {
			if status(err) == http.StatusPreconditionFailed {
				return nil, damaged(f.name, "another object has taken its place")
			}
			return nil, err
		}
		if !f.s.pause(ctx, attempt) {
			return nil, ctx.Err()
		}
	}
}

func (f *file) attempt(ctx context.Context, b []byte, from, to int64) error {
	got, err := f.s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &f.s.address.Bucket,
		Key: aws.String(f.s.key(f.runID, f.name)), IfMatch: &f.etag,
		Range: aws.String(fmt.Sprintf("bytes=%d-%d", from, to-1))}, f.s.singleAttemptWhenDown)
	if f.s.noteOutcome(err) != nil {
		return err
	}
	defer func() { _ = got.Body.Close() }() // only read
	if n := aws.ToInt64(got.ContentLength); got.ContentLength != nil && n != to-from {
		return damaged(f.name, fmt.Sprintf("of %d bytes that it should have at %d there are %d", to-from, from, n))
	}
	if _, err := io.ReadFull(got.Body, b); err != nil {
		return fmt.Errorf("reading a range: %w", err)
	}
	return nil
}

package s3store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"golang.org/x/sync/errgroup"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/objects"
)

// errNameExists says that an object has the name, or had when it was asked.
var errNameExists = errors.New("the name is taken")

// Put implements objects.Store.
func (s *Store) Put(ctx context.Context, a engine.Artifact, from record.Source) error {
	if err := objects.CheckNames(a.RunID, a.Name); err != nil {
		return err
	}
	ctx, cancel := s.withTransferTimeout(ctx, a.SizeBytes)
	defer cancel()
	if done, err := s.alreadyStored(ctx, a); done || err != nil {
		return err
	}
	f, err := s.local(ctx, a, from)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	sums, err := s.measure(ctx, f, a)
	if err != nil {
		return fmt.Errorf("storing part %s: %w", a.Name, err)
	}
	key := s.key(a.RunID, a.Name)
	for attempt := 1; ; attempt++ {
		if a.SizeBytes <= s.opts.PartBytes {
			err = s.putWhole(ctx, key, f, sums)
		} else {
			err = s.putParts(ctx, key, f, sums)
		}
		if !errors.Is(err, errNameExists) {
			break
		}
		if done, err := s.alreadyStored(ctx, a); done || err != nil {
			return err
		}
		// Another writer is at it: what it writes has the name already, and is not there yet.
		if attempt >= s.opts.Attempts || !s.pause(ctx, attempt) {
			break
		}
	}
	if status(err) == http.StatusInternalServerError {
		// Servers fail so when somebody else has completed the same upload meanwhile.
		if done, lost := s.alreadyStored(ctx, a); done && lost == nil {
			return nil
		}
	}
	if err != nil {
		return s.explain(err, opError("Storing", a.Name))
	}
	s.sweep(ctx)
	return nil
}

// local is what the source gives as a file of this machine: a part goes up in pieces, some of
// them more than once, and a node gives it from its beginning to its end.
func (s *Store) local(ctx context.Context, a engine.Artifact, from record.Source) (*os.File, error) {
	r, err := from.Open(ctx)
	if err != nil {
		return nil, fmt.Errorf("storing part %s: %w", a.Name, err)
	}
	if f, ok := r.(*os.File); ok {
		return f, nil
	}
	dir := s.opts.CacheDir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		_ = r.Close()
		return nil, record.DiskError(dir, err)
	}
	f, err := os.CreateTemp(dir, "incoming-*")
	if err != nil {
		_ = r.Close()
		return nil, record.DiskError(dir, err)
	}
	_ = os.Remove(f.Name()) // so that a killed process leaves nothing
	failed, err := objects.Receive(ctx, a, openedSource{r}, f)
	switch {
	case err != nil:
		err = fmt.Errorf("storing part %s: %w", a.Name, err)
	case failed != nil:
		err = record.DiskError(dir, failed)
	default:
		return f, nil
	}
	_ = f.Close()
	return nil, err
}

// openedSource is a source that is open already.
type openedSource struct{ io.ReadCloser }

func (o openedSource) Open(context.Context) (io.ReadCloser, error) { return o.ReadCloser, nil }

// alreadyStored reports whether the file is stored.
func (s *Store) alreadyStored(ctx context.Context, a engine.Artifact) (bool, error) {
	found, err := s.headObject(ctx, s.key(a.RunID, a.Name))
	switch {
	case err != nil && isAbsent(err):
		return false, nil
	case err != nil:
		return false, s.explain(err, opError("Storing", a.Name))
	case found.size != a.SizeBytes || found.sha256 != a.SHA256:
		return false, fmt.Errorf("storing part %s: another file has that name: %w", a.Name, store.ErrConflict)
	}
	return true, nil
}

// fileSums are the sums of a file.
type fileSums struct {
	objectInfo
	sha   [sha256.Size]byte
	part  int64               // bytes of a part
	parts [][sha256.Size]byte // of a file that goes up in parts
}

// measure reads the file once, and makes sure that it is the artifact.
func (s *Store) measure(ctx context.Context, f *os.File, a engine.Artifact) (*fileSums, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	m := &fileSums{
		objectInfo: objectInfo{size: a.SizeBytes, sha256: a.SHA256, block: blockSize(a.SizeBytes)},
		part:       s.opts.PartBytes,
	}
	if n := (a.SizeBytes + maxParts - 1) / maxParts; n > m.part {
		m.part = (n + 1<<20 - 1) &^ (1<<20 - 1)
	}
	whole, block, part := sha256.New(), sha256.New(), sha256.New()
	inParts := a.SizeBytes > s.opts.PartBytes
	buf := make([]byte, 64<<10)
	for at := int64(0); at < a.SizeBytes && st.Size() == a.SizeBytes; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		// Blocks are whole buffers, parts whole blocks of 64 KiB.
		n, err := f.ReadAt(buf[:min(int64(len(buf)), a.SizeBytes-at)], at)
		if n == 0 || err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		at += int64(n)
		whole.Write(buf[:n])
		block.Write(buf[:n])
		if at%m.block == 0 || at == a.SizeBytes {
			m.sums = append(m.sums, block.Sum(nil)[:sumBytes]...)
			block.Reset()
		}
		if !inParts {
			continue
		}
		part.Write(buf[:n])
		if at%m.part == 0 || at == a.SizeBytes {
			m.parts = append(m.parts, [sha256.Size]byte(part.Sum(nil)))
			part.Reset()
		}
	}
	m.sha = [sha256.Size]byte(whole.Sum(nil))
	if st.Size() != a.SizeBytes || hex.EncodeToString(m.sha[:]) != a.SHA256 {
		return nil, fmt.Errorf("%s is not %d bytes with SHA-256 %s: %w", st.Name(), a.SizeBytes, a.SHA256,
			objects.ErrChecksum)
	}
	return m, nil
}

const (
	metaSHA256 = "loadstone-sha256"
	metaBlocks = "loadstone-blocks"
)

// metadata are kept with the object; together they stay below the 2 KB that S3 allows.
func (m *fileSums) metadata() map[string]string {
	return map[string]string{metaSHA256: m.sha256,
		metaBlocks: fmt.Sprintf("%d.%d.%s", m.size, m.block, base64.RawURLEncoding.EncodeToString(m.sums))}
}

// ifNoneMatch makes a write fail when something has the name.
func (s *Store) ifNoneMatch(o *s3.Options) {
	if !s.unconditional.Load() {
		o.APIOptions = append(o.APIOptions, smithyhttp.SetHeaderValue("If-None-Match", "*"))
	}
}

// signPayload makes the SHA-256 that is known part of the signature, so that it is not computed again.
func signPayload(sum [sha256.Size]byte) func(*s3.Options) {
	hash := hex.EncodeToString(sum[:])
	return func(o *s3.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("loadstonePayloadHash",
				func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
					middleware.InitializeOutput, middleware.Metadata, error) {
					return next.HandleInitialize(v4.SetPayloadHash(ctx, hash), in)
				}), middleware.Before)
		})
	}
}

func encoded(sum [sha256.Size]byte) *string {
	return aws.String(base64.StdEncoding.EncodeToString(sum[:]))
}

func (s *Store) putWhole(ctx context.Context, key string, f *os.File, m *fileSums) error {
	_, err := s.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket:         &s.address.Bucket,
		Key:            &key,
		Body:           io.NewSectionReader(f, 0, m.size),
		ContentLength:  &m.size,
		ChecksumSHA256: encoded(m.sha),
		ContentType: aws.String(
			"application/vnd.apache.parquet",
		),
		Metadata: m.metadata(),
	}, s.singleAttemptWhenDown, s.ifNoneMatch, signPayload(m.sha))
	if s.noteOutcome(err) != nil && isConflict(err) {
		return fmt.Errorf("%w: %w", errNameExists, err)
	}
	return err
}

// putParts uploads a file in parts, and goes on with an upload of it that stopped.
func (s *Store) putParts(ctx context.Context, key string, f *os.File, m *fileSums) error {
	id, have, err := s.resume(ctx, key, m)
	if err != nil {
		return err
	}
	if id == "" {
		made, err := s.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &s.address.Bucket,
			Key: &key, ChecksumAlgorithm: types.ChecksumAlgorithmSha256, Metadata: m.metadata(),
			ContentType: aws.String("application/vnd.apache.parquet")}, s.singleAttemptWhenDown)
		if s.noteOutcome(err) != nil {
			return err
		}
		id = aws.ToString(made.UploadId)
	}
	done := make([]types.CompletedPart, len(m.parts))
	group, ctxParts := errgroup.WithContext(ctx)
	group.SetLimit(concurrentUploads)
	for i := range m.parts {
		number := int32(i + 1)
		if etag, ok := have[number]; ok {
			done[i] = types.CompletedPart{PartNumber: &number, ETag: &etag, ChecksumSHA256: encoded(m.parts[i])}
			continue
		}
		group.Go(func() error {
			at := int64(i) * m.part
			size := min(m.part, m.size-at)
			put, err := s.client.UploadPart(ctxParts, &s3.UploadPartInput{Bucket: &s.address.Bucket, Key: &key, UploadId: &id,
				PartNumber: &number, Body: io.NewSectionReader(f, at, size), ContentLength: &size,
				ChecksumSHA256: encoded(m.parts[i])}, s.singleAttemptWhenDown, signPayload(m.parts[i]))
			if s.noteOutcome(err) != nil {
				return err
			}
			done[i] = types.CompletedPart{PartNumber: &number, ETag: put.ETag, ChecksumSHA256: encoded(m.parts[i])}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		if isConflict(err) { // another has completed this upload, or given it up
			return fmt.Errorf("%w: %w", errNameExists, err)
		}
		return err
	}
	return s.complete(ctx, key, id, m, done)
}

func (s *Store) complete(ctx context.Context, key, id string, m *fileSums, parts []types.CompletedPart) error {
	_, err := s.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket:          &s.address.Bucket,
		Key:             &key,
		UploadId:        &id,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	}, s.singleAttemptWhenDown, s.ifNoneMatch)
	if s.noteOutcome(err) != nil {
		if isConflict(err) {
			s.abort(ctx, key, id)
			return fmt.Errorf("%w: %w", errNameExists, err)
		}
		return err
	}
	found, err := s.headObject(ctx, key)
	if err != nil {
		return err
	}
	if found.size != m.size || found.sha256 != m.sha256 {
		// An upload of something that begins with the same parts was taken for this one.
		_, err := s.client.DeleteObject(
			ctx,
			&s3.DeleteObjectInput{Bucket: &s.address.Bucket, Key: &key},
			s.singleAttemptWhenDown,
		)
		if s.noteOutcome(err) != nil {
			return fmt.Errorf("removing what was stored as something else: %w", err)
		}
		return errNameExists // and free again
	}
	return nil
}

// resume finds an upload of this very file that stopped, and the parts that are there.
func (s *Store) resume(ctx context.Context, key string, m *fileSums) (string, map[int32]string, error) {
	uploads, err := s.uploads(ctx, key)
	if err != nil {
		return "", nil, err
	}
	slices.SortFunc(uploads, func(a, b types.MultipartUpload) int {
		return aws.ToTime(b.Initiated).Compare(aws.ToTime(a.Initiated))
	})
	for _, u := range uploads {
		if aws.ToString(u.Key) != key {
			continue
		}
		have, err := s.parts(ctx, key, aws.ToString(u.UploadId), m)
		if err != nil {
			return "", nil, err
		}
		if len(have) > 0 {
			s.opts.Log.Info().Str("key", key).Int("parts_there", len(have)).Int("parts", len(m.parts)).
				Msg("an interrupted upload is resumed")
			return aws.ToString(u.UploadId), have, nil
		}
	}
	return "", nil, nil
}

// parts are those of the upload that hold what the file holds there; none when one differs.
func (s *Store) parts(ctx context.Context, key, id string, m *fileSums) (map[int32]string, error) {
	have := map[int32]string{}
	in := &s3.ListPartsInput{Bucket: &s.address.Bucket, Key: &key, UploadId: &id}
	for pages := s3.NewListPartsPaginator(s.client, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx, s.singleAttemptWhenDown)
		if s.noteOutcome(err) != nil {
			if isConflict(err) || isAbsent(err) {
				return nil, nil // completed, or given up
			}
			return nil, err
		}
		for _, p := range page.Parts {
			i := int(aws.ToInt32(p.PartNumber)) - 1
			sum := aws.ToString(p.ChecksumSHA256)
			if sum == "" {
				continue // it cannot be known what it holds: it goes up again
			}
			if i < 0 || i >= len(m.parts) || sum != *encoded(m.parts[i]) {
				return nil, nil
			}
			have[int32(i+1)] = aws.ToString(p.ETag)
		}
	}
	return have, nil
}

// uploads are those under way whose key begins so.
func (s *Store) uploads(ctx context.Context, prefix string) (all []types.MultipartUpload, err error) {
	in := &s3.ListMultipartUploadsInput{Bucket: &s.address.Bucket, Prefix: &prefix}
	for {
		page, err := s.client.ListMultipartUploads(ctx, in, s.singleAttemptWhenDown)
		if s.noteOutcome(err) != nil {
			if unsupported(err) {
				return nil, nil
			}
			return nil, err
		}
		all = append(all, page.Uploads...)
		if !aws.ToBool(page.IsTruncated) || cmp.Or(aws.ToString(page.NextKeyMarker), "") == "" {
			return all, nil
		}
		in.KeyMarker, in.UploadIdMarker = page.NextKeyMarker, page.NextUploadIdMarker
	}
}

// abort gives an upload up; one that stays is swept later.
func (s *Store) abort(ctx context.Context, key, id string) {
	_, err := s.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &s.address.Bucket, Key: &key,
		UploadId: &id}, s.singleAttemptWhenDown)
	if s.noteOutcome(err) != nil && !isAbsent(err) && !isConflict(err) {
		s.opts.Log.Warn().Err(err).Str("key", key).Msg("an upload that was given up cannot be removed")
	}
}

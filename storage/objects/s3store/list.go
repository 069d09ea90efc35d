package s3store

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"

	"github.com/loadstone-db/loadstone/storage/objects"
)

// keys lists the keys that begin so.
func (s *Store) keys(ctx context.Context, prefix string) (keys []string, err error) {
	in := &s3.ListObjectsV2Input{Bucket: &s.address.Bucket, Prefix: &prefix}
	for pages := s3.NewListObjectsV2Paginator(s.client, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx, s.singleAttemptWhenDown)
		if s.noteOutcome(err) != nil {
			return nil, err
		}
		for _, o := range page.Contents {
			keys = append(keys, aws.ToString(o.Key))
		}
	}
	return keys, nil
}

// Names implements objects.Store.
func (s *Store) Names(ctx context.Context, runID string) ([]string, error) {
	if err := objects.CheckRun(runID); err != nil {
		return nil, err
	}
	ctx, cancel := s.withTransferTimeout(ctx, 0)
	defer cancel()
	prefix := s.key(runID, "")
	keys, err := s.keys(ctx, prefix)
	if err != nil {
		return nil, s.explain(err, "Listing the parts of the run")
	}
	var names []string
	for _, key := range keys {
		if name := strings.TrimPrefix(key, prefix); objects.IsPart(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Remove implements objects.Store.
func (s *Store) Remove(ctx context.Context, runID, name string) error {
	if err := objects.CheckNames(runID, name); err != nil {
		return err
	}
	ctx, cancel := s.withTransferTimeout(ctx, 0)
	defer cancel()
	key := s.key(runID, name)
	s.forget(key)
	s.cache.forgetFile(runID, name)
	_, err := s.client.DeleteObject(
		ctx,
		&s3.DeleteObjectInput{Bucket: &s.address.Bucket, Key: &key},
		s.singleAttemptWhenDown,
	)
	if s.noteOutcome(err) != nil && !isAbsent(err) {
		return s.explain(err, opError("Removing", name))
	}
	return nil
}

// Delete implements objects.Store. Uploads of the run that stopped are given up too.
func (s *Store) Delete(ctx context.Context, runID string) error {
	if err := objects.CheckRun(runID); err != nil {
		return err
	}
	ctx, cancel := s.withTransferTimeout(ctx, 0)
	defer cancel()
	prefix := s.key(runID, "")
	s.forget(prefix)
	s.cache.forget(runID)
	uploads, err := s.uploads(ctx, prefix)
	if err != nil {
		return s.explain(err, "Deleting the parts of the run")
	}
	for _, u := range uploads {
		s.abort(ctx, aws.ToString(u.Key), aws.ToString(u.UploadId))
	}
	keys, err := s.keys(ctx, prefix)
	if err != nil {
		return s.explain(err, "Deleting the parts of the run")
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2 * concurrentUploads)
	for _, key := range keys {
		group.Go(func() error {
			_, err := s.client.DeleteObject(
				ctx,
				&s3.DeleteObjectInput{Bucket: &s.address.Bucket, Key: &key},
				s.singleAttemptWhenDown,
			)
			return s.noteOutcome(err)
		})
	}
	return s.explain(group.Wait(), "Deleting the parts of the run")
}

// checkAccess does once with an object of its own what is done with those of runs.
func (s *Store) checkAccess(ctx context.Context) error {
	ctx, cancel := s.withTransferTimeout(ctx, 0)
	defer cancel()
	key := s.address.path() + ".loadstone-check-" + strings.ToLower(rand.Text())
	content := []byte("Loadstone looks at start whether it can keep results here.\n")
	sum := sha256.Sum256(content)
	put := func() error {
		_, err := s.client.PutObject(ctx, &s3.PutObjectInput{Bucket: &s.address.Bucket, Key: &key,
			Body: bytes.NewReader(content), ChecksumSHA256: encoded(sum)}, s.ifNoneMatch, signPayload(sum))
		return err
	}
	err := put()
	if err != nil && unsupported(err) {
		s.unconditional.Store(true)
		err = put()
	}
	if err != nil {
		return s.explain(err, "Writing a test object")
	}
	defer func() {
		// Also where something else failed. What stays is 59 bytes.
		_, _ = s.client.DeleteObject(context.WithoutCancel(ctx), &s3.DeleteObjectInput{Bucket: &s.address.Bucket, Key: &key},
			func(o *s3.Options) { o.RetryMaxAttempts = 1 })
	}()
	if !s.unconditional.Load() && put() == nil {
		s.unconditional.Store(true)
	}
	if s.unconditional.Load() {
		s.opts.Log.Warn().Str("results", s.address.String()).
			Msg("the results storage does not know conditional writes: that nothing is overwritten is looked at before a part " +
				"is stored, and not with it")
	}
	got, err := s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &s.address.Bucket, Key: &key,
		Range: aws.String("bytes=10-")})
	if err != nil {
		return s.explain(err, "Reading a test object")
	}
	back, err := io.ReadAll(io.LimitReader(got.Body, 1<<10))
	if err = errors.Join(err, got.Body.Close()); err == nil && !bytes.Equal(back, content[10:]) {
		err = errors.New("a range of it is not what was written")
	}
	if err != nil {
		return s.explain(err, "Reading a test object")
	}
	if keys, err := s.keys(ctx, key); err != nil || len(keys) != 1 {
		if err == nil {
			err = fmt.Errorf("%d objects are listed instead of the one that was written", len(keys))
		}
		return s.explain(err, "Listing a test object")
	}
	if _, err := s.uploads(ctx, key); err != nil {
		return s.explain(err, "Listing uploads")
	}
	_, err = s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.address.Bucket, Key: &key})
	return s.explain(err, "Deleting a test object")
}

const (
	// abandonedAfter is how old an upload is that nobody goes on with.
	abandonedAfter = 24 * time.Hour
	sweepInterval  = 24 * time.Hour
)

// sweep gives up uploads that were abandoned, at start and once a day.
func (s *Store) sweep(ctx context.Context) {
	s.mu.Lock()
	due := time.Since(s.swept) >= sweepInterval
	if due {
		s.swept = time.Now()
	}
	s.mu.Unlock()
	if !due {
		return
	}
	uploads, err := s.uploads(ctx, s.address.path())
	if err != nil {
		s.opts.Log.Warn().Err(err).Msg("uploads that were abandoned cannot be listed")
		return
	}
	for _, u := range uploads {
		if age := time.Since(aws.ToTime(u.Initiated)); age >= abandonedAfter && u.Initiated != nil {
			s.opts.Log.Info().Str("key", aws.ToString(u.Key)).Dur("age", age).Msg("an abandoned upload is removed")
			s.abort(ctx, aws.ToString(u.Key), aws.ToString(u.UploadId))
		}
	}
}

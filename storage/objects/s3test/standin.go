package s3test

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// StandIn answers the part of the S3 protocol that results need, in memory: bodies are held to the
// SHA-256 that is signed and to their checksums, conditions of writes hold. It knows the
// access key and does not compute signatures: a real server does.
type StandIn struct {
	Server
	mu      sync.Mutex
	buckets map[string]*bucket
	uploads int
}

type bucket struct {
	objects map[string]*object
	uploads map[string]*upload
}

type object struct {
	body []byte
	etag string
	meta http.Header
}

type upload struct {
	key   string
	at    time.Time
	meta  http.Header
	parts map[int]*object
}

// NewStandIn starts one with the bucket.
func NewStandIn(t testing.TB, name string) *StandIn {
	s := &StandIn{buckets: map[string]*bucket{name: {objects: map[string]*object{}, uploads: map[string]*upload{}}}}
	served := httptest.NewServer(s)
	t.Cleanup(served.Close)
	s.Server = Server{Endpoint: served.URL, Access: "standin", Secret: "standin-secret-key", Bucket: name, handler: s}
	return s
}

// Flip changes a bit of a stored object.
func (s *StandIn) Flip(t testing.TB, key string, at int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.buckets[s.Bucket].objects[key]
	if o == nil {
		t.Fatalf("there is no object %s", key)
	}
	o.body[at] ^= 1
}

// Shorten cuts the end of a stored object off.
func (s *StandIn) Shorten(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.buckets[s.Bucket].objects[key]
	o.body = o.body[:len(o.body)-1]
}

// Age makes every upload under way look that much older.
func (s *StandIn) Age(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.buckets[s.Bucket].uploads {
		u.at = u.at.Add(-by)
	}
}

// Uploads is how many are under way.
func (s *StandIn) Uploads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.buckets[s.Bucket].uploads)
}

// Keys lists the objects.
func (s *StandIn) Keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.buckets[s.Bucket].objects))
}

// Remove takes an object away, as somebody else would.
func (s *StandIn) Remove(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.buckets[s.Bucket].objects, key)
}

// ServeHTTP implements http.Handler.
func (s *StandIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	name, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[name]
	switch {
	case !strings.Contains(r.Header.Get("Authorization"), "Credential="+s.Access+"/"):
		refuse(w, http.StatusForbidden, "InvalidAccessKeyId")
	case b == nil:
		refuse(w, http.StatusNotFound, "NoSuchBucket")
	case !checksumMatches(r, body):
		refuse(w, http.StatusBadRequest, "XAmzContentSHA256Mismatch")
	case key == "":
		b.list(w, r)
	case r.URL.Query().Has("uploads") || r.URL.Query().Has("uploadId"):
		s.multipart(w, r, b, key, body)
	default:
		b.object(w, r, key, body)
	}
}

func checksumMatches(r *http.Request, body []byte) bool {
	sum := sha256.Sum256(body)
	signed, stated := r.Header.Get("X-Amz-Content-Sha256"), r.Header.Get("X-Amz-Checksum-Sha256")
	return signed == hex.EncodeToString(sum[:]) && (stated == "" || stated == base64.StdEncoding.EncodeToString(sum[:]))
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", code, code)
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(v)
}

func etag(body []byte) string { return fmt.Sprintf(`"%x"`, md5.Sum(body)) }

func metadata(h http.Header) http.Header {
	kept := http.Header{}
	for name, values := range h {
		if strings.HasPrefix(name, "X-Amz-Meta-") {
			kept[name] = values
		}
	}
	return kept
}

func (b *bucket) object(w http.ResponseWriter, r *http.Request, key string, body []byte) {
	o := b.objects[key]
	switch r.Method {
	case http.MethodPut:
		if o != nil && r.Header.Get("If-None-Match") == "*" {
			refuse(w, http.StatusPreconditionFailed, "PreconditionFailed")
			return
		}
		b.objects[key] = &object{body, etag(body), metadata(r.Header)}
		w.Header().Set("ETag", etag(body))
	case http.MethodDelete:
		delete(b.objects, key)
		w.WriteHeader(http.StatusNoContent)
	case http.MethodGet, http.MethodHead:
		if o == nil {
			refuse(w, http.StatusNotFound, "NoSuchKey")
			return
		}
		maps.Copy(w.Header(), o.meta)
		w.Header().Set("ETag", o.etag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(o.body))
	default:
		refuse(w, http.StatusMethodNotAllowed, "MethodNotAllowed")
	}
}

type listed struct {
	Key  string
	Size int
}

type listedUpload struct {
	Key, UploadId string
	Initiated     string
}

func (b *bucket) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Has("uploads") {
		var out struct {
			XMLName xml.Name `xml:"ListMultipartUploadsResult"`
			Upload  []listedUpload
		}
		for id, u := range b.uploads {
			if strings.HasPrefix(u.key, q.Get("prefix")) {
				out.Upload = append(out.Upload, listedUpload{u.key, id, u.at.UTC().Format(time.RFC3339)})
			}
		}
		answer(w, out)
		return
	}
	var out struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		IsTruncated           bool
		NextContinuationToken string `xml:",omitempty"`
		Contents              []listed
	}
	for _, key := range slices.Sorted(maps.Keys(b.objects)) {
		if !strings.HasPrefix(key, q.Get("prefix")) || key <= q.Get("continuation-token") {
			continue
		}
		if len(out.Contents) == 5 { // short pages, so that there are several
			out.IsTruncated, out.NextContinuationToken = true, out.Contents[4].Key
			break
		}
		out.Contents = append(out.Contents, listed{key, len(b.objects[key].body)})
	}
	answer(w, out)
}

type listedPart struct {
	PartNumber, Size     int
	ETag, ChecksumSHA256 string
}

func (s *StandIn) multipart(w http.ResponseWriter, r *http.Request, b *bucket, key string, body []byte) {
	q := r.URL.Query()
	if r.Method == http.MethodPost && q.Has("uploads") {
		s.uploads++
		id := "upload-" + strconv.Itoa(s.uploads)
		b.uploads[id] = &upload{key, time.Now(), metadata(r.Header), map[int]*object{}}
		answer(w, struct {
			XMLName               xml.Name `xml:"InitiateMultipartUploadResult"`
			Bucket, Key, UploadId string
		}{Bucket: s.Bucket, Key: key, UploadId: id})
		return
	}
	id := q.Get("uploadId")
	u := b.uploads[id]
	if u == nil || u.key != key {
		refuse(w, http.StatusNotFound, "NoSuchUpload")
		return
	}
	switch r.Method {
	case http.MethodPut:
		n, _ := strconv.Atoi(q.Get("partNumber"))
		u.parts[n] = &object{body: body, etag: etag(body)}
		w.Header().Set("ETag", etag(body))
	case http.MethodGet:
		out := struct {
			XMLName xml.Name `xml:"ListPartsResult"`
			Part    []listedPart
		}{}
		for _, n := range slices.Sorted(maps.Keys(u.parts)) {
			sum := sha256.Sum256(u.parts[n].body)
			out.Part = append(out.Part, listedPart{n, len(u.parts[n].body), u.parts[n].etag,
				base64.StdEncoding.EncodeToString(sum[:])})
		}
		answer(w, out)
	case http.MethodDelete:
		delete(b.uploads, id)
		w.WriteHeader(http.StatusNoContent)
	case http.MethodPost:
		s.finish(w, r, b, id, body)
	}
}

func (s *StandIn) finish(w http.ResponseWriter, r *http.Request, b *bucket, id string, body []byte) {
	u := b.uploads[id]
	if b.objects[u.key] != nil && r.Header.Get("If-None-Match") == "*" {
		refuse(w, http.StatusPreconditionFailed, "PreconditionFailed")
		return
	}
	var in struct{ Part []listedPart }
	if xml.Unmarshal(body, &in) != nil {
		refuse(w, http.StatusBadRequest, "MalformedXML")
		return
	}
	o := &object{meta: u.meta}
	for i, p := range in.Part {
		part := u.parts[p.PartNumber]
		if part == nil || part.etag != p.ETag || p.PartNumber != i+1 {
			refuse(w, http.StatusBadRequest, "InvalidPart")
			return
		}
		o.body = append(o.body, part.body...)
	}
	o.etag = fmt.Sprintf(`"%x-%d"`, md5.Sum(o.body), len(in.Part))
	b.objects[u.key] = o
	delete(b.uploads, id)
	answer(w, struct {
		XMLName           xml.Name `xml:"CompleteMultipartUploadResult"`
		Bucket, Key, ETag string
	}{Bucket: s.Bucket, Key: u.key, ETag: o.etag})
}

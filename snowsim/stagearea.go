package snowsim

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/md5" //nolint:gosec // it is what the protocols of storage compare files by
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// The clouds in whose protocol the stand-in keeps stages.
const (
	StagesS3    = "S3"
	StagesAzure = "AZURE"
	StagesGCS   = "GCS"
)

const (
	stageRegion = "us-west-2"
	// stageValidity is how long the credentials of one PUT are good for.
	stageValidity = time.Hour
	// maxStored bounds a file and each part of one.
	maxStored = 512 << 20
)

// storedFile is a file of a stage. Files are never changed once they are there.
type storedFile struct {
	path   string
	body   []byte
	meta   http.Header // what the client said of it, by the name that the cloud's protocol has for it
	stored time.Time
}

func (f *storedFile) md5() string {
	sum := md5.Sum(f.body) //nolint:gosec // see above
	return hex.EncodeToString(sum[:])
}

// stageCredential is what the answer to a PUT gives: it is good for one user's stage and for a while.
type stageCredential struct {
	secret, token, prefix string
	expires               time.Time
}

// stageArea is the storage of a cloud in which users' stages (@~) are: an object server over TLS, which speaks to the
// drivers as S3, Azure or Google Cloud do. It is safe for concurrent use.
type stageArea struct {
	cloud     string
	masterKey string // of all files, base64
	port      string
	authority string // the certificate of who has signed the server's
	server    *http.Server

	parts       atomic.Int64 // that came so far
	mu          sync.Mutex
	stored      map[string]*storedFile
	uploads     map[string]map[string]storedPart // parts by the id of an upload and the name of a part
	credentials map[string]stageCredential
}

type storedPart struct {
	body []byte
	meta http.Header
}

// serve starts the object server on the address of the account's, with another port. Its requests end with serving.
func (a *stageArea) serve(ctx, serving context.Context, account net.Addr,
	around func(http.Handler) http.Handler) (net.Listener, error) {
	host := ""
	if at, ok := account.(*net.TCPAddr); ok && !at.IP.IsUnspecified() {
		host = at.IP.String()
		if at.IP.IsLoopback() {
			host = "127.0.0.1"
		}
	}
	var key [16]byte
	_, _ = rand.Read(key[:]) // never fails
	a.masterKey = base64.StdEncoding.EncodeToString(key[:])
	a.stored, a.uploads = map[string]*storedFile{}, map[string]map[string]storedPart{}
	a.credentials = map[string]stageCredential{}
	certificate, err := a.certify()
	if err != nil {
		return nil, err
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp4", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, fmt.Errorf("snowsim: listening for stages: %w", err)
	}
	_, a.port, _ = net.SplitHostPort(listener.Addr().String()) // it has one
	a.server = &http.Server{Handler: around(http.HandlerFunc(a.answer)), ReadHeaderTimeout: 30 * time.Second,
		BaseContext: func(net.Listener) context.Context { return serving },
		TLSConfig:   &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}}
	return listener, nil
}

// certify makes an authority, whose certificate clients trust, and a certificate for all addresses of this machine.
func (a *stageArea) certify() (tls.Certificate, error) {
	from, until := time.Now().Add(-time.Hour), time.Now().AddDate(1, 0, 0)
	root := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "snowsim's authority"},
		NotBefore: from, NotAfter: until, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "snowsim"}, NotBefore: from,
		NotAfter: until, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		DNSNames: []string{azureAccount + ".blob." + azureDomain}}
	addresses, _ := net.InterfaceAddrs() // without them there is this machine
	for _, at := range addresses {
		if network, ok := at.(*net.IPNet); ok {
			leaf.IPAddresses = append(leaf.IPAddresses, network.IP)
		}
	}
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("snowsim: making a key: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("snowsim: making a key: %w", err)
	}
	authority, err := x509.CreateCertificate(rand.Reader, root, root, &rootKey.PublicKey, rootKey)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("snowsim: making a certificate: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, root, &key.PublicKey, rootKey)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("snowsim: making a certificate: %w", err)
	}
	a.authority = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority}))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// The host of Azure's storage, ACCOUNT.blob.DOMAIN, for clients that put it together by themselves: every name below
// localhost is this machine's.
const azureAccount, azureDomain = "snowsim", "localhost"

// issue gives the credentials and the address for a PUT into folder.
func (a *stageArea) issue(client, host, prefix, folder string) (map[string]any, error) {
	first, rest, dotted := strings.Cut(host, ".")
	if !dotted {
		return nil, protocol.NotSimulated("a stage for clients that come by IPv6")
	}
	c := stageCredential{secret: NewPassword() + NewPassword(), token: NewPassword() + NewPassword(), prefix: prefix,
		expires: time.Now().Add(stageValidity)}
	id := "SNOWSIM" + strings.ToUpper(NewPassword())
	info := map[string]any{"locationType": a.cloud, "isClientSideEncrypted": true, "region": stageRegion,
		"certificateAuthority": a.authority}
	switch a.cloud {
	case StagesAzure:
		c.token = base64.StdEncoding.EncodeToString([]byte(NewPassword()))
		id = c.token
		// The host of a stage is ACCOUNT.ENDPOINT: cut at its first dot, the address of this machine is that, and no name
		// has to be looked up.
		info["storageAccount"], info["endPoint"], info["path"] = first, rest+":"+a.port, "stages"
		if client != "Go" {
			info["storageAccount"], info["endPoint"] = azureAccount, "blob."+azureDomain+":"+a.port
		}
		info["location"] = folder
		info["creds"] = map[string]any{"AZURE_SAS_TOKEN": "?sv=2021-10-04&sr=c&sp=rwl&se=" +
			url.QueryEscape(c.expires.UTC().Format(time.RFC3339)) + "&sig=" + url.QueryEscape(c.token)}
	case StagesGCS:
		id = c.token
		info["storageAccount"], info["endPoint"], info["location"] = "", host+":"+a.port, folder
		info["creds"] = map[string]any{"GCS_ACCESS_TOKEN": c.token}
	default:
		info["endPoint"], info["location"] = host+":"+a.port, folder
		info["creds"] = map[string]any{"AWS_KEY_ID": id, "AWS_SECRET_KEY": c.secret, "AWS_TOKEN": c.token, "AWS_ID": id,
			"AWS_KEY": c.secret}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for old, c := range a.credentials {
		if time.Since(c.expires) > stageValidity {
			delete(a.credentials, old)
		}
	}
	a.credentials[id] = c
	return info, nil
}

// expire ends all credentials that were given so far.
func (a *stageArea) expire() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, c := range a.credentials {
		c.expires = time.Now().Add(-time.Second)
		a.credentials[id] = c
	}
}

func (a *stageArea) credential(id string) (stageCredential, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, found := a.credentials[id]
	return c, found
}

func (a *stageArea) store(path string, body []byte, meta http.Header) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stored[path] = &storedFile{path: path, body: body, meta: meta, stored: time.Now()}
}

func (a *stageArea) file(path string) *storedFile {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stored[path]
}

// files are those whose paths begin with a prefix, in order; they are taken away when they are to be.
func (a *stageArea) files(prefix string, remove bool) (list []*storedFile) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for path, f := range a.stored {
		if strings.HasPrefix(path, prefix) {
			list = append(list, f)
			if remove {
				delete(a.stored, path)
			}
		}
	}
	slices.SortFunc(list, func(x, y *storedFile) int { return strings.Compare(x.path, y.path) })
	return list
}

// addPart keeps a part of an upload, finish puts the parts together.
func (a *stageArea) addPart(upload, name string, p storedPart) {
	a.parts.Add(1)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.uploads[upload] == nil {
		a.uploads[upload] = map[string]storedPart{}
	}
	a.uploads[upload][name] = p
}

func (a *stageArea) finish(upload, path string, names []string, meta http.Header) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	var body []byte
	for _, name := range names {
		p, found := a.uploads[upload][name]
		if !found {
			return false
		}
		body = append(body, p.body...)
	}
	if meta == nil {
		meta = a.uploads[upload][""].meta
	}
	delete(a.uploads, upload)
	a.stored[path] = &storedFile{path: path, body: body, meta: meta, stored: time.Now()}
	return true
}

// open reads a file as the account does, which has the key of what drivers encrypt.
func (a *stageArea) open(path string) (text []byte, found bool, err error) {
	f := a.file(path)
	if f == nil {
		return nil, false, nil
	}
	key, iv := f.meta.Get("X-Amz-Meta-X-Amz-Key"), f.meta.Get("X-Amz-Meta-X-Amz-Iv")
	for _, name := range []string{"X-Ms-Meta-Encryptiondata", "X-Goog-Meta-Encryptiondata"} {
		var said struct {
			Key struct {
				Encrypted string `json:"EncryptedKey"`
			} `json:"WrappedContentKey"`
			IV string `json:"ContentEncryptionIV"`
		}
		if given := f.meta.Get(name); given != "" && json.Unmarshal([]byte(given), &said) == nil {
			key, iv = said.Key.Encrypted, said.IV
		}
	}
	text, err = a.decrypt(f.body, key, iv)
	return text, true, err
}

var errNotEncrypted = errors.New("it is not encrypted with the key of the stage")

// decrypt undoes what drivers do to files of a stage: AES in CBC mode with a key of the file, which is encrypted with
// that of the stage, block by block.
func (a *stageArea) decrypt(body []byte, encryptedKey, iv string) ([]byte, error) {
	master, err := base64.StdEncoding.DecodeString(a.masterKey)
	if err != nil {
		return nil, fmt.Errorf("reading the key of the stage: %w", err)
	}
	sealed, err := base64.StdEncoding.DecodeString(encryptedKey)
	start, failed := base64.StdEncoding.DecodeString(iv)
	if err != nil || failed != nil || len(sealed) == 0 || len(sealed)%aes.BlockSize != 0 || len(start) != aes.BlockSize ||
		len(body) == 0 || len(body)%aes.BlockSize != 0 {
		return nil, errNotEncrypted
	}
	outer, err := aes.NewCipher(master)
	if err != nil {
		return nil, fmt.Errorf("reading the key of the stage: %w", err)
	}
	key := make([]byte, len(sealed))
	for at := 0; at < len(sealed); at += aes.BlockSize {
		outer.Decrypt(key[at:], sealed[at:])
	}
	if key, err = unpad(key); err != nil {
		return nil, err
	}
	inner, err := aes.NewCipher(key)
	if err != nil {
		return nil, errNotEncrypted
	}
	text := make([]byte, len(body))
	cipher.NewCBCDecrypter(inner, start).CryptBlocks(text, body)
	return unpad(text)
}

// unpad takes the padding away, whose last byte says how long it is.
func unpad(text []byte) ([]byte, error) {
	n := int(text[len(text)-1])
	if n == 0 || n > aes.BlockSize || n > len(text) ||
		!bytes.Equal(text[len(text)-n:], bytes.Repeat([]byte{byte(n)}, n)) {
		return nil, errNotEncrypted
	}
	return text[:len(text)-n], nil
}

// contentMD5 checks the checksum of a body when the client gives one.
func contentMD5(body []byte, given string) bool {
	sum := md5.Sum(body) //nolint:gosec // see above
	return given == "" || given == base64.StdEncoding.EncodeToString(sum[:])
}

func kept(h http.Header, prefixes ...string) http.Header {
	out := http.Header{}
	for name, values := range h {
		for _, p := range prefixes {
			if strings.HasPrefix(name, p) {
				out[name] = values
			}
		}
	}
	return out
}

package snowsim

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// stageRefusal is what a cloud's storage answers to a request that it does not carry out.
type stageRefusal struct {
	status              int
	code, text, details string
}

func (a *stageArea) refuse(w http.ResponseWriter, r *stageRefusal) {
	if a.cloud == StagesAzure {
		w.Header().Set("X-Ms-Error-Code", r.code)
	}
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(r.status)
	//nolint:gosec // what comes from the request is escaped, and it is XML
	_, _ = fmt.Fprintf(w, `<?xml version="1.0" encoding="utf-8"?><Error><Code>%s</Code><Message>%s</Message>`+
		`<AuthenticationErrorDetail>%s</AuthenticationErrorDetail></Error>`,
		r.code, escapeXML(r.text), r.details)
}

// fault is what a fault of that status is in this cloud's words.
func (a *stageArea) fault(status int) *stageRefusal {
	switch {
	case status == http.StatusForbidden && a.cloud == StagesAzure:
		return &stageRefusal{status, "AuthorizationFailure", "This request is not authorized to perform this operation.", ""}
	case status == http.StatusForbidden:
		return &stageRefusal{status, "AccessDenied", "Access Denied", ""}
	case a.cloud == StagesAzure:
		return &stageRefusal{status, "ServerBusy", "The server is busy.", ""}
	}
	return &stageRefusal{status, "SlowDown", "Please reduce your request rate.", ""}
}

// answer is the object server.
func (a *stageArea) answer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxStored))
	if err != nil {
		a.refuse(w, &stageRefusal{http.StatusBadRequest, "EntityTooLarge", "The body broke off, or is too long.", ""})
		return
	}
	path := strings.TrimPrefix(r.URL.Path, "/")
	var credential stageCredential
	var refusal *stageRefusal
	switch a.cloud {
	case StagesAzure:
		credential, refusal = a.azureCredential(r)
	case StagesGCS:
		credential, refusal = a.bearer(r)
	default:
		credential, refusal = a.signed(r, body)
	}
	if refusal == nil && !strings.HasPrefix(path, credential.prefix) {
		refusal = a.fault(http.StatusForbidden) // among it what is asked of the bucket as a whole
	}
	if refusal != nil {
		a.refuse(w, refusal)
		return
	}
	if r.Method == http.MethodHead {
		a.head(w, path)
		return
	}
	q := r.URL.Query()
	switch {
	case a.cloud == StagesAzure:
		refusal = a.azure(w, r, q, path, body)
	case r.Method == http.MethodPut && q.Has("uploadId") && a.cloud == StagesS3:
		a.addPart(q.Get("uploadId"), q.Get("partNumber"), storedPart{body: body})
		w.Header().Set("ETag", etag(body))
	case r.Method == http.MethodPut:
		a.store(path, body, kept(r.Header, "X-Amz-Meta-", "X-Goog-Meta-"))
		w.Header().Set("ETag", etag(body))
	case a.cloud == StagesS3:
		refusal = a.multipart(w, r, q, path, body)
	default:
		refusal = notHere
	}
	if refusal != nil {
		a.refuse(w, refusal)
	}
}

var notHere = &stageRefusal{http.StatusNotImplemented, "NotImplemented", "The stand-in does not know this request.", ""}

func etag(body []byte) string { return `"` + (&storedFile{body: body}).md5() + `"` }

// head tells what is known of a file.
func (a *stageArea) head(w http.ResponseWriter, path string) {
	f := a.file(path)
	if f == nil {
		if a.cloud == StagesAzure {
			w.Header().Set("X-Ms-Error-Code", "BlobNotFound")
		}
		w.WriteHeader(http.StatusNotFound)
		return
	}
	for name, values := range f.meta {
		w.Header()[name] = values
	}
	w.Header().Set("ETag", `"`+f.md5()+`"`)
	w.Header().Set("Last-Modified", f.stored.UTC().Format(http.TimeFormat))
	w.Header().Set("Content-Length", strconv.Itoa(len(f.body)))
	w.WriteHeader(http.StatusOK)
}

// multipart is the begin, the end and the abandonment of an upload in parts, as S3 has them.
func (a *stageArea) multipart(w http.ResponseWriter, r *http.Request, q url.Values, path string,
	body []byte) *stageRefusal {
	upload := q.Get("uploadId")
	switch {
	case r.Method == http.MethodPost && q.Has("uploads"):
		upload = NewPassword()
		a.addPart(upload, "", storedPart{meta: kept(r.Header, "X-Amz-Meta-")})
		_, _ = fmt.Fprintf(w, "<InitiateMultipartUploadResult><Key>%s</Key><UploadId>%s</UploadId>"+
			"</InitiateMultipartUploadResult>", escapeXML(path), upload)
	case r.Method == http.MethodPost && upload != "":
		var wanted struct {
			Parts []struct {
				Number string `xml:"PartNumber"`
			} `xml:"Part"`
		}
		if xml.Unmarshal(body, &wanted) != nil {
			return &stageRefusal{http.StatusBadRequest, "MalformedXML", "The XML is not well-formed.", ""}
		}
		names := make([]string, len(wanted.Parts))
		for i, p := range wanted.Parts {
			names[i] = p.Number
		}
		if !a.finish(upload, path, names, nil) {
			return &stageRefusal{http.StatusBadRequest, "InvalidPart", "A part could not be found.", ""}
		}
		_, _ = fmt.Fprintf(w, "<CompleteMultipartUploadResult><Key>%s</Key><ETag>%s</ETag></CompleteMultipartUploadResult>",
			escapeXML(path), escapeXML(etag(a.file(path).body)))
	case r.Method == http.MethodDelete && upload != "":
		a.abandon(upload)
		w.WriteHeader(http.StatusNoContent)
	default:
		return notHere
	}
	return nil
}

func escapeXML(text string) string {
	var out strings.Builder
	_ = xml.EscapeText(&out, []byte(text)) // into memory
	return out.String()
}

func (a *stageArea) abandon(upload string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.uploads, upload)
}

// azure carries out Put Blob, Put Block and Put Block List.
func (a *stageArea) azure(w http.ResponseWriter, r *http.Request, q url.Values, path string,
	body []byte) *stageRefusal {
	// Without the header the version is that of the signature.
	if r.Method != http.MethodPut || r.Header.Get("X-Ms-Version") == "" && !q.Has("sv") {
		return notHere
	}
	switch q.Get("comp") {
	case "":
		if !strings.EqualFold(r.Header.Get("X-Ms-Blob-Type"), "BlockBlob") {
			return &stageRefusal{http.StatusBadRequest, "MissingRequiredHeader", "x-ms-blob-type is missing.", ""}
		}
		if !contentMD5(body, r.Header.Get("X-Ms-Blob-Content-Md5")) {
			return &stageRefusal{http.StatusBadRequest, "Md5Mismatch", "The MD5 is another.", ""}
		}
		a.store(path, body, kept(r.Header, "X-Ms-Meta-"))
	case "block":
		a.addPart(path, q.Get("blockid"), storedPart{body: body})
	case "blocklist":
		var list struct {
			Blocks []string `xml:",any"`
		}
		if xml.Unmarshal(body, &list) != nil || !a.finish(path, path, list.Blocks, kept(r.Header, "X-Ms-Meta-")) {
			return &stageRefusal{http.StatusBadRequest, "InvalidBlockList", "The specified block list is invalid.", ""}
		}
	default:
		return notHere
	}
	w.Header().Set("ETag", etag(body))
	w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
	w.WriteHeader(http.StatusCreated)
	return nil
}

// azureCredential finds the shared access signature of a request.
func (a *stageArea) azureCredential(r *http.Request) (stageCredential, *stageRefusal) {
	const failed = "Server failed to authenticate the request. Make sure the value of Authorization header is formed " +
		"correctly including the signature."
	c, found := a.credential(r.URL.Query().Get("sig"))
	if !found {
		return c, &stageRefusal{http.StatusForbidden, "AuthenticationFailed", failed, "Signature did not match."}
	}
	if time.Now().After(c.expires) {
		return c, &stageRefusal{http.StatusForbidden, "AuthenticationFailed", failed,
			"Signature not valid in the specified time frame"}
	}
	return c, nil
}

// bearer finds the access token of a request.
func (a *stageArea) bearer(r *http.Request) (stageCredential, *stageRefusal) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	c, found := a.credential(token)
	if !found || time.Now().After(c.expires) {
		return c, &stageRefusal{http.StatusUnauthorized, "AuthenticationRequired", "Authentication required.", ""}
	}
	return c, nil
}

// signed checks a request's AWS signature, version 4: what it is computed of is the request as it came.
func (a *stageArea) signed(r *http.Request, body []byte) (stageCredential, *stageRefusal) {
	denied := func(code, format string, args ...any) (stageCredential, *stageRefusal) {
		return stageCredential{}, &stageRefusal{http.StatusForbidden, code, fmt.Sprintf(format, args...), ""}
	}
	parts := map[string]string{}
	given, isAWS := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ")
	for part := range strings.SplitSeq(given, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		parts[name] = value
	}
	scope := strings.Split(parts["Credential"], "/")
	if !isAWS || len(scope) != 5 || scope[2] != stageRegion || scope[3] != "s3" || scope[4] != "aws4_request" {
		return denied("AccessDenied", "Access Denied")
	}
	c, found := a.credential(scope[0])
	if !found {
		return denied("InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records.")
	}
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil || at.Format("20060102") != scope[1] {
		return denied("AccessDenied", "AWS authentication requires a valid Date or x-amz-date header")
	}
	if off := time.Since(at); off > 15*time.Minute || off < -15*time.Minute {
		return denied("RequestTimeTooSkewed", "The difference between the request time and the current time is too large.")
	}
	sum := sha256.Sum256(body)
	switch hash := r.Header.Get("X-Amz-Content-Sha256"); {
	case hash == "UNSIGNED-PAYLOAD", hash == hex.EncodeToString(sum[:]):
	case strings.HasPrefix(hash, "STREAMING-"):
		return stageCredential{}, notHere
	default:
		return denied("XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match.")
	}
	names := strings.Split(parts["SignedHeaders"], ";")
	for _, needed := range []string{"host", "x-amz-date", "x-amz-security-token"} {
		if !slices.Contains(names, needed) {
			return denied("AccessDenied", "There were headers present in the request which were not signed: %s", needed)
		}
	}
	// What the client says of a file is signed as well.
	for name := range kept(r.Header, "X-Amz-Meta-") {
		if !slices.Contains(names, strings.ToLower(name)) {
			return denied("AccessDenied", "There were headers present in the request which were not signed: %s", name)
		}
	}
	text := "AWS4-HMAC-SHA256\n" + at.Format("20060102T150405Z") + "\n" + strings.Join(scope[1:], "/") + "\n" +
		hexSHA256(canonicalRequest(r, names))
	key := []byte("AWS4" + c.secret)
	for _, part := range append(slices.Clone(scope[1:]), text) {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	if subtle.ConstantTimeCompare([]byte(hex.EncodeToString(key)), []byte(parts["Signature"])) != 1 {
		return denied(
			"SignatureDoesNotMatch",
			"The request signature we calculated does not match the signature you provided.",
		)
	}
	if r.Header.Get("X-Amz-Security-Token") != c.token {
		return stageCredential{}, &stageRefusal{http.StatusBadRequest, "InvalidToken", "The provided token is malformed.", ""}
	}
	if time.Now().After(c.expires) {
		return stageCredential{}, &stageRefusal{http.StatusBadRequest, "ExpiredToken", "The provided token has expired.", ""}
	}
	return c, nil
}

func hexSHA256(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// canonicalRequest is the text that AWS signs: method, path, parameters, the signed headers and the body's checksum.
func canonicalRequest(r *http.Request, names []string) string {
	var query []string
	for name, values := range r.URL.Query() {
		for _, v := range values {
			query = append(query, awsEscape(name)+"="+awsEscape(v))
		}
	}
	slices.Sort(query)
	var headers strings.Builder
	for _, name := range names {
		value := strings.Join(r.Header.Values(name), ",")
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = strconv.FormatInt(r.ContentLength, 10)
		}
		headers.WriteString(name + ":" + strings.Join(strings.Fields(value), " ") + "\n")
	}
	return strings.Join([]string{r.Method, r.URL.EscapedPath(), strings.Join(query, "&"), headers.String(),
		strings.Join(names, ";"), r.Header.Get("X-Amz-Content-Sha256")}, "\n")
}

func awsEscape(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

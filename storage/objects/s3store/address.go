package s3store

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
)

// Address says which storage keeps results.
type Address struct {
	Bucket, Prefix string
	// Endpoint is the address of another server than Amazon's, Region "" for that of the environment.
	Endpoint, Region string
	// HostStyle puts the bucket into the name of the host, which is so without an Endpoint.
	HostStyle bool
}

const (
	scheme      = "s3://"
	addressHint = "write s3://BUCKET/PREFIX, and for another server than Amazon's " +
		"?endpoint=https://HOST:PORT&region=REGION"
	maxPrefix = 512
)

var (
	bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	// What S3 calls safe in keys, without what a path or an address could take for something else.
	prefixName = regexp.MustCompile(`^[A-Za-z0-9!_*()'-][A-Za-z0-9!_.*()'-]*$`)
	regionName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}$`)
)

// IsAddress reports whether the text means storage, and not a folder.
func IsAddress(text string) bool { return strings.HasPrefix(strings.ToLower(text), scheme) }

func addressError(format string, args ...any) error {
	return &engine.Error{Code: engine.CodeInvalid, Hint: addressHint,
		Message: "The address of the results cannot be used: " + fmt.Sprintf(format, args...) + "."}
}

// ParseAddress reads s3://BUCKET/PREFIX?endpoint=…&region=…&path_style=…. Errors never repeat
// the text, which may hold what somebody takes for the place of a password.
func ParseAddress(text string) (Address, error) {
	u, err := url.Parse(text)
	if err != nil {
		return Address{}, addressError("it is no URL")
	}
	switch {
	case u.User != nil || strings.Contains(u.Host, "@"):
		return Address{}, addressError("it holds keys, which belong into the environment (AWS_ACCESS_KEY_ID and " +
			"AWS_SECRET_ACCESS_KEY) or a profile (AWS_PROFILE)")
	case u.Fragment != "" || u.Opaque != "":
		return Address{}, addressError("there is no place for a #")
	case !bucketName.MatchString(u.Host) || strings.Contains(u.Host, ".."):
		return Address{}, addressError("a bucket has 3 to 63 small letters, digits, dots and hyphens")
	}
	a := Address{Bucket: u.Host, Prefix: strings.Trim(u.Path, "/")}
	if len(a.Prefix) > maxPrefix {
		return Address{}, addressError("its prefix has more than %d characters", maxPrefix)
	}
	if a.Prefix != "" {
		for _, element := range strings.Split(a.Prefix, "/") {
			if !prefixName.MatchString(element) {
				return Address{}, addressError(
					"its prefix has an element that is empty, begins with a dot, or has other characters " +
						"than letters, digits and !_.*()'-",
				)
			}
		}
	}
	return a, a.parameters(u.RawQuery)
}

// parameters reads what stands behind the question mark.
func (a *Address) parameters(raw string) error {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return addressError("what stands behind its question mark cannot be read")
	}
	known := []string{"endpoint", "path_style", "region"}
	for name, values := range query {
		if !slices.Contains(known, name) || len(values) != 1 {
			return addressError("it has a parameter that is not known or stands twice; there are %s", strings.Join(known, ", "))
		}
	}
	if a.Region = query.Get("region"); a.Region != "" && !regionName.MatchString(a.Region) {
		return addressError("its region is no name")
	}
	if a.Endpoint = query.Get("endpoint"); a.Endpoint != "" {
		e, err := url.Parse(a.Endpoint)
		if err != nil || (e.Scheme != "http" && e.Scheme != "https") || e.Host == "" || e.User != nil ||
			e.RawQuery != "" || e.Fragment != "" {
			return addressError("its endpoint is not http:// or https:// and a host")
		}
	}
	switch query.Get("path_style") {
	case "":
		a.HostStyle = a.Endpoint == ""
	case "true":
		a.HostStyle = false
	case "false":
		a.HostStyle = true
	default:
		return addressError("path_style is true or false")
	}
	return nil
}

// String is the address for people.
func (a Address) String() string {
	text := strings.TrimSuffix(scheme+a.Bucket+"/"+a.Prefix, "/")
	if a.Endpoint != "" {
		text += " at " + a.Endpoint
	}
	return text
}

// path is the beginning of all keys.
func (a Address) path() string {
	if a.Prefix == "" {
		return ""
	}
	return a.Prefix + "/"
}

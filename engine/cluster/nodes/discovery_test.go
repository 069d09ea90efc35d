package nodes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// names is a name server on loopback, with the records that a test gives it.
type names struct {
	conn net.PacketConn
	mu   sync.Mutex
	// hosts are addresses by name, services targets with ports.
	hosts    map[string][]string
	services map[string][]dnsmessage.SRVResource
	broken   bool
	done     chan struct{}
}

func serveNames(t *testing.T) *names {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &names{conn: conn, hosts: map[string][]string{}, services: map[string][]dnsmessage.SRVResource{},
		done: make(chan struct{})}
	go func() {
		defer close(s.done)
		b := make([]byte, 2048)
		for {
			n, from, err := conn.ReadFrom(b)
			if err != nil {
				return
			}
			if answer := s.answer(b[:n]); answer != nil {
				_, _ = conn.WriteTo(answer, from)
			}
		}
	}()
	t.Cleanup(func() { _ = conn.Close(); <-s.done })
	return s
}

func (s *names) answer(question []byte) []byte {
	var m dnsmessage.Message
	if m.Unpack(question) != nil || len(m.Questions) != 1 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q := m.Questions[0]
	name := strings.TrimSuffix(q.Name.String(), ".")
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	header := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1}
	_, host := s.hosts[name]
	_, service := s.services[name]
	switch {
	case s.broken:
		m.RCode = dnsmessage.RCodeServerFailure
	case !host && !service:
		m.RCode = dnsmessage.RCodeNameError
	}
	for _, text := range s.hosts[name] {
		ip := net.ParseIP(text)
		if four := ip.To4(); four != nil && q.Type == dnsmessage.TypeA {
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: [4]byte(four)}})
		} else if four == nil && q.Type == dnsmessage.TypeAAAA {
			m.Answers = append(m.Answers,
				dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: [16]byte(ip)}})
		}
	}
	for _, r := range s.services[name] {
		if q.Type == dnsmessage.TypeSRV {
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &r})
		}
	}
	out, err := m.Pack()
	if err != nil {
		return nil
	}
	return out
}

func (s *names) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// TestANameInDNSLeadsToItsNodes by A, AAAA and SRV records of a real name server.
func TestANameInDNSLeadsToItsNodes(t *testing.T) {
	t.Parallel()
	s := serveNames(t)
	s.set(func() {
		s.hosts["workers.test"] = []string{"10.0.0.2", "10.0.0.1", "10.0.0.1", "fd00::1"}
		s.hosts["one.test"] = []string{"10.0.0.9"}
		s.services["_control._tcp.workers.test"] = []dnsmessage.SRVResource{
			{Port: 9091, Target: dnsmessage.MustNewName("one.test.")},
			{Port: 9092, Target: dnsmessage.MustNewName("workers.test.")},
			{Port: 9093, Target: dnsmessage.MustNewName("gone.test.")}}
	})
	at := DNSScheme + s.conn.LocalAddr().String() + "/"
	for name, want := range map[string][]string{
		"workers.test:9090":          {"10.0.0.1:9090", "10.0.0.2:9090", "[fd00::1]:9090"},
		"_control._tcp.workers.test": {"10.0.0.1:9092", "10.0.0.2:9092", "10.0.0.9:9091", "[fd00::1]:9092"},
		"nobody.test:9090":           nil,
		"_nobody._tcp.test":          nil,
	} {
		d, err := ParseDNS(at + name)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		got, err := d.Addresses(ctx)
		cancel()
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	s.set(func() { s.broken = true })
	d, _ := ParseDNS(at + "workers.test:9090")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if got, err := d.Addresses(ctx); err == nil {
		t.Errorf("of a name server that fails: %v", got)
	}
}

func TestANameInDNSIsReadWithCare(t *testing.T) {
	for text, ok := range map[string]bool{"dns:///workers.bench.svc:9090": true, "dns:///_grpc._tcp.workers": true,
		"dns://10.0.0.10/workers:1": true, "dns://[fd00::1]:53/workers:1": true,
		"dns:///workers": false, "dns:///": false, "dns:///:9090": false, "dns:///a:0": false, "dns:///a:65536": false,
		"dns:///a:http": false, "dns:///a/b:1": false, "dns:///a:1?x": false, "dns://u@h/a:1": false, "dns:///a b:1": false,
		"a:9090": false, "http:///a:1": false, "dns://%zz/a:1": false} {
		if _, err := ParseDNS(text); (err == nil) != ok || err != nil && !errors.Is(err, ErrDNSName) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// fakeProvider is one whose addresses a test sets.
type fakeProvider struct {
	addresses []string
	err       error
	certain   bool
}

func (p *fakeProvider) String() string                              { return "test" }
func (p *fakeProvider) Authoritative() bool                         { return p.certain }
func (p *fakeProvider) Addresses(context.Context) ([]string, error) { return p.addresses, p.err }

// fakeDialers notes what is done with addresses.
type fakeDialers struct {
	calls  []string
	active map[string]bool
	lost   chan struct{}
}

func (w *fakeDialers) Add(key string, dial func() (protocol.Dialer, error)) error {
	if w.active[key] {
		return nil
	}
	if _, err := dial(); err != nil {
		return err
	}
	w.active[key] = true
	w.calls = append(w.calls, "+"+key)
	return nil
}
func (w *fakeDialers) Retire(key string)             { delete(w.active, key); w.calls = append(w.calls, "~"+key) }
func (w *fakeDialers) Remove(key string)             { delete(w.active, key); w.calls = append(w.calls, "-"+key) }
func (w *fakeDialers) Disconnected() <-chan struct{} { return w.lost }

func (w *fakeDialers) callsSince() []string {
	did := w.calls
	w.calls = nil
	slices.Sort(did)
	return did
}

var _ DialerSet = (*fakeDialers)(nil)

func TestNodesComeAndGoWithTheirAddresses(t *testing.T) {
	dns, catalog := &fakeProvider{}, &fakeProvider{certain: true}
	w := &fakeDialers{active: map[string]bool{}}
	tries := 0
	d := NewDiscovery(DiscoveryOptions{Providers: []AddressProvider{dns, catalog}, Log: zerolog.Nop(),
		Dial: func(address string) (protocol.Dialer, error) {
			if address == "bad" {
				tries++
				return nil, errors.New("no address")
			}
			return nil, nil
		}})
	for _, step := range []struct {
		name         string
		dns, catalog []string
		dnsErr       error
		want         []string
	}{
		{"nothing", nil, nil, nil, nil},
		{"found", []string{"a", "b"}, []string{"c"}, nil, []string{"+a", "+b", "+c"}},
		{"in both", []string{"a", "b", "c"}, []string{"c", "a"}, nil, nil},
		{"gone from one", []string{"b", "c"}, []string{"a"}, nil, nil},
		{"taken out", []string{"b", "c"}, nil, nil, []string{"-a"}},
		{"gone", []string{"c"}, nil, nil, []string{"~b"}},
		{"back", []string{"c", "b"}, nil, nil, []string{"+b"}},
		{"cannot be looked for", nil, nil, errors.New("away"), nil},
		{"nobody there", nil, nil, nil, []string{"~b", "~c"}},
		{"one that cannot be dialled", []string{"bad", "e"}, nil, nil, []string{"+e"}},
		{"the same again", []string{"bad", "e"}, nil, nil, nil},
	} {
		dns.addresses, dns.err, catalog.addresses = step.dns, step.dnsErr, step.catalog
		d.Discover(t.Context(), w)
		if got := w.callsSince(); !slices.Equal(got, step.want) {
			t.Errorf("%s: %v and not %v", step.name, got, step.want)
		}
	}
	if tries != 2 {
		t.Errorf("what cannot be dialled was tried %d times", tries)
	}
}

// TestAnswersThatNameSomeNodesLeadToAll: Cloud Map answers with eight tasks of more, others each time. All come to be
// dialled, and none whose stream stands loses it for being left out.
func TestAnswersThatNameSomeNodesLeadToAll(t *testing.T) {
	t.Parallel()
	const tasks, most = 20, 8
	s := serveNames(t)
	dns, err := ParseDNS(DNSScheme + s.conn.LocalAddr().String() + "/workers.bench.internal:9090")
	if err != nil {
		t.Fatal(err)
	}
	all := make([]string, tasks)
	for i := range all {
		all[i] = fmt.Sprintf("10.0.0.%d", i+1)
	}
	known, w := map[string]bool{}, &fakeDialers{active: map[string]bool{}}
	d := NewDiscovery(DiscoveryOptions{Providers: []AddressProvider{dns}, Log: zerolog.Nop(),
		Dial: func(string) (protocol.Dialer, error) { return nil, nil }})
	looks := 0
	for ; len(known) < tasks && looks < 100; looks++ {
		s.set(func() {
			rand.Shuffle(tasks, func(i, j int) { all[i], all[j] = all[j], all[i] })
			s.hosts["workers.bench.internal"] = slices.Clone(all[:most])
		})
		d.Discover(t.Context(), w)
		if len(w.active) != most {
			t.Fatalf("%d are held after an answer of %d", len(w.active), most)
		}
		for _, did := range w.callsSince() {
			switch address, added := strings.CutPrefix(did, "+"); {
			case added:
				known[address] = true
			case strings.HasPrefix(did, "-"):
				t.Fatalf("the stream of %s is ended", did)
			}
		}
	}
	if len(known) < tasks {
		t.Errorf("%d of %d were dialled after %d looks", len(known), tasks, looks)
	}
}

func TestALostStreamIsAReasonToLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvider{addresses: []string{"a"}}
		w := &fakeDialers{active: map[string]bool{}, lost: make(chan struct{}, 1)}
		d := NewDiscovery(DiscoveryOptions{Providers: []AddressProvider{p}, Log: zerolog.Nop(),
			Dial: func(string) (protocol.Dialer, error) { return nil, nil }})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); d.Watch(ctx, w) }()
		time.Sleep(DiscoveryInterval + time.Millisecond)
		synctest.Wait()
		if got := slices.Collect(maps.Keys(w.active)); !slices.Equal(got, []string{"a"}) {
			t.Errorf("after a while: %v", got)
		}
		p.addresses = []string{"a", "b"}
		w.lost <- struct{}{}
		synctest.Wait()
		if len(w.active) != 2 {
			t.Errorf("after a stream was lost: %v", w.active)
		}
		cancel()
		<-ended
	})
}

// silentServer is a name server that answers nothing.
type silentServer struct{ fakeProvider }

func (*silentServer) Addresses(ctx context.Context) ([]string, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestAPlaceThatDoesNotAnswerHidesNoOther: what operators add and take out counts meanwhile.
func TestAPlaceThatDoesNotAnswerHidesNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		catalog := &blockingProvider{fakeProvider{addresses: []string{"a:1"}, certain: true}}
		d := NewDiscovery(
			DiscoveryOptions{
				Providers: []AddressProvider{&silentServer{}, catalog},
				Dial:      func(string) (protocol.Dialer, error) { return nil, nil },
				Log:       zerolog.Nop(),
			},
		)
		w := &fakeDialers{active: map[string]bool{}, lost: make(chan struct{})}
		if d.Discover(t.Context(), w); !w.active["a:1"] {
			t.Error("an address of the catalog is not found")
		}
		catalog.addresses = nil
		if d.Discover(t.Context(), w); w.active["a:1"] {
			t.Error("an address that was taken out is still there")
		}
	})
}

// blockingProvider is a place that answers while it is waited for.
type blockingProvider struct{ fakeProvider }

func (p *blockingProvider) Addresses(ctx context.Context) ([]string, error) {
	return p.addresses, ctx.Err()
}

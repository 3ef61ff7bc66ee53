package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/redistest"
)

// write makes a file that is gone when the test ends.
func write(t *testing.T, name string, text []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// tlsServer starts a server that speaks TLS too, and returns that URL and the certificate that vouches for the server.
func tlsServer(t *testing.T) (url, cert string) {
	t.Helper()
	cert, key := certificate(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(free.Addr().(*net.TCPAddr).Port)
	free.Close()
	redistest.Start(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "no")
	return "rediss://127.0.0.1:" + port, cert
}

// certificate makes one for 127.0.0.1 that vouches for itself.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, "cert.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		write(t, "key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
}

// TestConnections reaches servers in all the ways that the flags offer.
func TestConnections(t *testing.T) {
	plain := redistest.Start(t, "--requirepass", "s3cret")
	host := strings.TrimPrefix(plain.URL(), "redis://")
	socket := filepath.Join(t.TempDir(), "s")
	redistest.Start(t, "--unixsocket", socket)
	secure, cert := tlsServer(t)
	cluster, sentinel := redistest.StartCluster(t), redistest.StartSentinel(t)
	tests := []struct {
		name string
		args []string
		want string // in what is printed if it fails
	}{
		{"password in the URL", []string{"--redis", "redis://:s3cret@" + host}, ""},
		{"password in a file", []string{"--redis", plain.URL(), "--password-file", write(t, "password", []byte("s3cret\r\n"))}, ""},
		{"wrong password in a file", []string{"--redis", "redis://:s3cret@" + host, "--password-file", write(t, "password", []byte("secret"))}, "WRONGPASS"},
		{"no password", []string{"--redis", plain.URL()}, "NOAUTH"},
		{"socket", []string{"--redis", "unix://" + socket}, ""},
		{"TLS with a certificate", []string{"--redis", secure, "--cacert", cert}, ""},
		{"TLS without", []string{"--redis", secure}, "certificate"},
		{"cluster", []string{"--redis", "redis+cluster://" + cluster.Addrs()[0]}, ""},
		{"sentinel", []string{"--redis", strings.Replace(sentinel.URL(), "redis:", "redis+sentinel:", 1)}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status, stdout, stderr := prime(t.Context(), append([]string{"locks"}, tt.args...)...)
			switch {
			case tt.want == "" && (status != exitOK || stderr != "" || !strings.HasPrefix(stdout, "LOCK ")):
				t.Errorf("status %d, stdout %q, stderr %q; want a table", status, stdout, stderr)
			case tt.want != "" && (status != exitFailure || !strings.Contains(stderr, tt.want)):
				t.Errorf("status %d, stderr %q; want 1 and %q", status, stderr, tt.want)
			}
		})
	}
}

func TestConnectionUsageErrors(t *testing.T) {
	empty := write(t, "empty", []byte("\nsecond line"))
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"nothing", nil, "--redis: must be set, or PRIME_REDIS_URL"},
		{"no scheme", []string{"--redis", "localhost:6379"}, "--redis: not a URL of Redis"},
		{"not of Redis", []string{"--redis", "http://localhost"}, "--redis: not a URL of Redis"},
		{"unknown kind", []string{"--redis", "redis+ring://localhost"}, "nothing is known of ring"},
		{"unknown parameter", []string{"--redis", "redis://localhost?pol_size=3"}, "pol_size"},
		{"not a database", []string{"--redis", "redis://localhost/x"}, "--redis: not a URL of Redis"},
		{"sentinels of which master", []string{"--redis", "redis+sentinel://localhost"}, "master_name"},
		{"slash in the password", []string{"--redis", "redis://:hush/hush@localhost"}, "written as %XX"},
		{"certificate without TLS", []string{"--redis", "redis://localhost", "--cacert", empty}, "--cacert: needs a URL that begins with rediss"},
		{"no certificate", []string{"--redis", "rediss+cluster://localhost", "--cacert", empty}, "holds no certificate"},
		{"no certificate file", []string{"--redis", "rediss+sentinel://localhost?master_name=m", "--cacert", "/no/such"}, "--cacert: open /no/such"},
		{"no password file", []string{"--redis", "redis://localhost", "--password-file", "/no/such"}, "--password-file: open /no/such"},
		{"no password in the file", []string{"--redis", "redis://localhost", "--password-file", empty}, "--password-file: the first line"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status, stdout, stderr := prime(t.Context(), append([]string{"locks"}, tt.args...)...)
			if status != exitUsage || stdout != "" || !strings.Contains(stderr, tt.want) || strings.Contains(stderr, "hush") {
				t.Errorf("status %d, stdout %q, stderr %q; want 2, nothing, and %q", status, stdout, stderr, tt.want)
			}
		})
	}
}

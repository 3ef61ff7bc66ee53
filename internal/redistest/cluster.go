package redistest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	clusterNodes = 3
	clusterSlots = 16384
	// clusterBound is how long the nodes may take to agree.
	clusterBound = 30 * time.Second
)

// Cluster is a Redis Cluster of three masters without replicas.
type Cluster struct {
	tb    testing.TB
	nodes []*Server
	buses []int // the nodes' ports for each other
}

// StartCluster runs three servers, shares the hash slots between them, and
// returns once every node knows the others and finds the cluster complete.
// extraArgs go to every node. The servers stop when the test ends.
func StartCluster(tb testing.TB, extraArgs ...string) *Cluster {
	tb.Helper()
	c := &Cluster{tb: tb}
	for range clusterNodes {
		c.startNode(extraArgs)
	}
	for i, node := range c.nodes {
		first, end := i*clusterSlots/clusterNodes, (i+1)*clusterSlots/clusterNodes
		c.do(node, "CLUSTER", "SET-CONFIG-EPOCH", i+1)
		c.do(node, "CLUSTER", "ADDSLOTSRANGE", first, end-1)
		if i > 0 { // the others hear of it from the first
			c.do(c.nodes[0], "CLUSTER", "MEET", "127.0.0.1", node.port, c.buses[i])
		}
	}
	Eventually(tb, clusterBound, c.agrees, "agreement of the cluster's nodes")
	return c
}

// startNode gives the node a bus port of its own choice: the default, ten
// thousand above the port, may be taken or out of range.
func (c *Cluster) startNode(extraArgs []string) {
	c.tb.Helper()
	var err error
	for range portAttempts {
		var bus int
		if bus, err = freePort(); err != nil {
			break
		}
		s := &Server{tb: c.tb, dir: c.tb.TempDir(), args: clusterArgs(bus, extraArgs)}
		if err = s.startAnywhere(); err == nil {
			c.tb.Cleanup(s.Kill)
			c.nodes, c.buses = append(c.nodes, s), append(c.buses, bus)
			return
		}
	}
	c.tb.Fatal(err)
}

func clusterArgs(bus int, extraArgs []string) []string {
	return append([]string{
		"--cluster-enabled", "yes",
		"--cluster-port", strconv.Itoa(bus),
		"--cluster-config-file", "nodes.conf",
	}, extraArgs...)
}

func (c *Cluster) do(node *Server, args ...any) {
	c.tb.Helper()
	client := redis.NewClient(&redis.Options{Addr: node.Addr()})
	defer client.Close()
	if err := client.Do(context.Background(), args...).Err(); err != nil {
		c.tb.Fatalf("%v: %v", args, err)
	}
}

// agrees reports whether every node sees all slots served, by the same owners.
func (c *Cluster) agrees() bool {
	views := map[string]bool{}
	for _, node := range c.nodes {
		view, ok := clusterView(node.Addr())
		if !ok {
			return false
		}
		views[view] = true
	}
	return len(views) == 1
}

// clusterView renders who owns which slots as the node at addr sees it, and
// whether it finds the cluster complete.
func clusterView(addr string) (string, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	info, err := client.ClusterInfo(ctx).Result()
	complete := err == nil && strings.Contains(info, "cluster_state:ok") &&
		strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d\r\n", clusterNodes))
	if !complete {
		return "", false
	}
	slots, err := client.ClusterSlots(ctx).Result() //lint:ignore SA1019 CLUSTER SHARDS came with Redis 7, and 6.2 is supported
	owners := make([]string, 0, len(slots))
	for _, r := range slots {
		if len(r.Nodes) != 1 {
			return "", false
		}
		owners = append(owners, fmt.Sprint(r.Start, r.End, r.Nodes[0]))
	}
	slices.Sort(owners)
	return strings.Join(owners, "\n"), err == nil
}

// Addrs returns the addresses of the nodes as host:port.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, 0, len(c.nodes))
	for _, node := range c.nodes {
		addrs = append(addrs, node.Addr())
	}
	return addrs
}

// Nodes returns the servers, to be killed or paused one by one. A node that
// is restarted keeps its place in the cluster.
func (c *Cluster) Nodes() []*Server { return c.nodes }

// Client returns a new cluster client with go-redis's default settings,
// closed when the test tb ends.
func (c *Cluster) Client(tb testing.TB) *redis.ClusterClient {
	tb.Helper()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	tb.Cleanup(func() { client.Close() })
	return client
}

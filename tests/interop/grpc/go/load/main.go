// Loads a proxy for RocketMQ 5 clients with bare gRPC calls, and prints what it saw: calls, seconds, milliseconds.
//
//	load ENDPOINT send    TOPIC SECONDS CALLERS RATE
//	load ENDPOINT receive TOPIC SECONDS CALLERS RATE
//
// A call that is refused for being too many is made again after 20 ms, and not counted.
// send: bodies of 1 KiB; RATE calls a second, or 0: each caller sends as soon as its last send is answered.
// receive: each caller receives up to 32 messages and acknowledges each by a call, as RocketMQ's clients do.
package main

import (
	"context"
	"fmt"
	"os"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

const connections = 4

var body = make([]byte, 1024)
var number, refused atomic.Int64

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func ok(status *v2.Status) {
	if status.GetCode() != v2.Code_OK {
		check(fmt.Errorf("%v: %s", status.GetCode(), status.GetMessage()))
	}
}

func resource(name string) *v2.Resource { return &v2.Resource{Name: name} }

func message(topic string) *v2.Message {
	return &v2.Message{Topic: resource(topic), Body: body, SystemProperties: &v2.SystemProperties{
		MessageId: fmt.Sprintf("01%032X", number.Add(1)+time.Now().UnixNano()), MessageType: v2.MessageType_NORMAL,
		BornTimestamp: timestamppb.Now(), BornHost: "load", BodyEncoding: v2.Encoding_IDENTITY}}
}

func send(ctx context.Context, client v2.MessagingServiceClient, topic string) error {
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	for {
		answer, err := client.SendMessage(ctx, &v2.SendMessageRequest{Messages: []*v2.Message{message(topic)}})
		if err == nil && answer.GetStatus().GetCode() == v2.Code_TOO_MANY_REQUESTS {
			refused.Add(1)
			time.Sleep(20 * time.Millisecond)
			continue
		}
		if err == nil {
			ok(answer.GetStatus())
		}
		return err
	}
}

// receive takes one batch and acknowledges it; it returns how many messages that were.
func receive(ctx context.Context, client v2.MessagingServiceClient, topic string) (int, error) {
	limited, cancel := context.WithTimeout(ctx, 9*time.Second)
	defer cancel()
	filter := &v2.FilterExpression{Type: v2.FilterType_TAG, Expression: "*"}
	stream, err := client.ReceiveMessage(limited, &v2.ReceiveMessageRequest{Group: resource("load"),
		MessageQueue: &v2.MessageQueue{Topic: resource(topic), Id: -1}, FilterExpression: filter, BatchSize: 32,
		InvisibleDuration: durationpb.New(60 * time.Second), LongPollingTimeout: durationpb.New(5 * time.Second)})
	if err != nil {
		return 0, err
	}
	var found []*v2.Message
	for {
		part, err := stream.Recv()
		if err != nil {
			break
		}
		if m := part.GetMessage(); m != nil {
			found = append(found, m)
		}
	}
	for _, m := range found {
		answer, err := client.AckMessage(ctx, &v2.AckMessageRequest{Group: resource("load"), Topic: resource(topic),
			Entries: []*v2.AckMessageEntry{{MessageId: m.GetSystemProperties().GetMessageId(), ReceiptHandle: m.GetSystemProperties().GetReceiptHandle()}}})
		if err != nil {
			return 0, err
		}
		ok(answer.GetStatus())
	}
	return len(found), nil
}

// greet tells the proxy who this is, as clients do: upstream's serves no receive before.
func greet(ctx context.Context, client v2.MessagingServiceClient, mode, topic string) {
	stream, err := client.Telemetry(ctx)
	check(err)
	settings := &v2.Settings{}
	if mode == "send" {
		kind := v2.ClientType_PRODUCER
		settings.ClientType = &kind
		settings.PubSub = &v2.Settings_Publishing{Publishing: &v2.Publishing{Topics: []*v2.Resource{resource(topic)}}}
	} else {
		kind := v2.ClientType_SIMPLE_CONSUMER
		settings.ClientType = &kind
		settings.PubSub = &v2.Settings_Subscription{Subscription: &v2.Subscription{Group: resource("load"),
			LongPollingTimeout: durationpb.New(5 * time.Second),
			Subscriptions:      []*v2.SubscriptionEntry{{Topic: resource(topic), Expression: &v2.FilterExpression{Type: v2.FilterType_TAG, Expression: "*"}}}}}
	}
	settings.UserAgent = &v2.UA{Language: v2.Language_GOLANG, Version: "5.1.4", Hostname: "load"}
	check(stream.Send(&v2.TelemetryCommand{Command: &v2.TelemetryCommand_Settings{Settings: settings}}))
	_, err = stream.Recv()
	check(err)
	beat := &v2.HeartbeatRequest{ClientType: settings.GetClientType()}
	if mode != "send" {
		beat.Group = resource("load")
	}
	_, err = client.Heartbeat(ctx, beat)
	check(err)
}

func main() {
	endpoint, mode, topic := os.Args[1], os.Args[2], os.Args[3]
	seconds, _ := strconv.ParseFloat(os.Args[4], 64)
	callers, _ := strconv.Atoi(os.Args[5])
	rate, _ := strconv.ParseFloat(os.Args[6], 64)
	ctx := metadata.AppendToOutgoingContext(context.Background(), "x-mq-client-id", "load@1@0@"+mode, "x-mq-language", "GO",
		"x-mq-client-version", "5.1.4", "x-mq-protocol", "GRPC_V2", "x-mq-namespace", "", "x-mq-request-id", "6f1c",
		"x-mq-date-time", time.Now().UTC().Format("20060102T150405Z"))
	var clients []v2.MessagingServiceClient
	for range connections {
		connection, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
		check(err)
		clients = append(clients, v2.NewMessagingServiceClient(connection))
	}
	_, err := clients[0].QueryRoute(ctx, &v2.QueryRouteRequest{Topic: resource(topic), Endpoints: &v2.Endpoints{
		Scheme: v2.AddressScheme_IPv4, Addresses: []*v2.Address{{Host: "127.0.0.1", Port: 8081}}}})
	check(err)
	greet(ctx, clients[0], mode, topic)
	var mutex sync.Mutex
	var waits []float64
	var count atomic.Int64
	due := make(chan time.Time, 100_000)
	started := time.Now()
	until := started.Add(time.Duration(seconds * float64(time.Second)))
	var group sync.WaitGroup
	if rate > 0 {
		group.Add(1)
		go func() {
			defer group.Done()
			for n := 0; ; n++ {
				at := started.Add(time.Duration(float64(n) / rate * float64(time.Second)))
				if at.After(until) {
					close(due)
					return
				}
				time.Sleep(time.Until(at))
				due <- at
			}
		}()
	}
	for n := range callers {
		group.Add(1)
		go func() {
			defer group.Done()
			var mine []float64
			client := clients[n%connections]
			one := func(at time.Time) {
				more := 1
				var err error
				if mode == "send" {
					err = send(ctx, client, topic)
				} else {
					more, err = receive(ctx, client, topic)
				}
				check(err)
				mine = append(mine, float64(time.Since(at).Microseconds())/1000)
				count.Add(int64(more))
			}
			if rate > 0 {
				for at := range due {
					one(at)
				}
			} else {
				for time.Now().Before(until) {
					one(time.Now())
				}
			}
			mutex.Lock()
			waits = append(waits, mine...)
			mutex.Unlock()
		}()
	}
	group.Wait()
	took := time.Since(started).Seconds()
	sort.Float64s(waits)
	at := func(part float64) float64 { return waits[int(part*float64(len(waits)-1))] }
	fmt.Printf("%d %.3f %.2f %.2f %d\n", count.Load(), took, at(0.5), at(0.99), refused.Load())
}

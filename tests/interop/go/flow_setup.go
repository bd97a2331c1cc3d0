package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

const setupArguments = 7

// Twice the client's longest interval: after 30 s it looks for brokers and queues again.
const waitMax = 120 * time.Second
const sendMax = 20 * time.Second // a busy machine takes longer than the usual 3 s

// setup is what the flows share: where the cluster is and who they are.
var setup struct {
	namesrv       []string
	suffix        string
	brokers       []string // their addresses
	account       primitive.Credentials
	administrator primitive.Credentials
}

var instances atomic.Int32

// readSetup takes: name server, suffix of topics and groups, addresses of the brokers between commas, access key and secret
// key of the clients, the same of an administrator ("-": unsigned).
func readSetup(arguments []string) error {
	if len(arguments) < setupArguments {
		return fmt.Errorf("name server, suffix, brokers, access key, secret key, administrator's access key and secret key")
	}
	setup.namesrv = []string{arguments[0]}
	setup.suffix = arguments[1]
	setup.brokers = strings.Split(arguments[2], ",")
	if arguments[3] != "-" {
		setup.account = primitive.Credentials{AccessKey: arguments[3], SecretKey: arguments[4]}
		setup.administrator = primitive.Credentials{AccessKey: arguments[5], SecretKey: arguments[6]}
	}
	return nil
}

func named(flow string) string {
	return "Flow-" + flow + "-" + setup.suffix
}

// instance names a client of its own: clients of one name share their connections and groups.
func instance() string {
	return fmt.Sprintf("%s-%d", setup.suffix, instances.Add(1))
}

func resolver() primitive.NsResolver {
	return primitive.NewPassthroughResolver(setup.namesrv)
}

func expect(holds bool, otherwise ...any) {
	if !holds {
		panic(fmt.Sprintln(otherwise...))
	}
}

// need returns the value of a call that must not fail.
func need[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func await(condition func() bool, what ...any) {
	for deadline := time.Now().Add(waitMax); !condition(); time.Sleep(20 * time.Millisecond) {
		expect(time.Now().Before(deadline), "waited", waitMax, "for", fmt.Sprint(what...))
	}
}

func producerOptions(group string, more ...producer.Option) []producer.Option {
	return append([]producer.Option{
		producer.WithGroupName(group), producer.WithInstanceName(instance()), producer.WithNsResolver(resolver()),
		producer.WithCredentials(setup.account), producer.WithSendMsgTimeout(sendMax),
	}, more...)
}

// startProducer starts a producer of its own connections.
func startProducer(group string, more ...producer.Option) rocketmq.Producer {
	sender := need(rocketmq.NewProducer(producerOptions(group, more...)...))
	expectNoError(sender.Start())
	return sender
}

func expectNoError(err error) {
	if err != nil {
		panic(err)
	}
}

type handler = func(context.Context, ...*primitive.MessageExt) (consumer.ConsumeResult, error)

var everything = consumer.MessageSelector{Type: consumer.TAG, Expression: "*"}

func consumerOptions(group string, more ...consumer.Option) []consumer.Option {
	return append([]consumer.Option{
		consumer.WithGroupName(group), consumer.WithInstance(instance()), consumer.WithNsResolver(resolver()),
		consumer.WithCredentials(setup.account), consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
	}, more...)
}

// startConsumer begins with the first message. A topic without a route would stop this client for good.
func startConsumer(
	group string, topic string, selector consumer.MessageSelector, handle handler, more ...consumer.Option,
) rocketmq.PushConsumer {
	queuesOf(topic)
	started := need(rocketmq.NewPushConsumer(consumerOptions(group, more...)...))
	expectNoError(started.Subscribe(topic, selector, handle))
	expectNoError(started.Start())
	return started
}

// queuesOf returns the queues of a topic once the name server knows it.
func queuesOf(topic string) []*primitive.MessageQueue {
	looking := need(admin.NewAdmin(admin.WithResolver(resolver())))
	defer looking.Close()
	var queues []*primitive.MessageQueue
	await(func() bool {
		queues, _ = looking.FetchPublishMessageQueues(context.Background(), topic) // an error until it is there
		return len(queues) > 0
	}, "a route of ", topic)
	return queues
}

type closing interface{ Shutdown() error }

func shutdown(clients ...closing) {
	for _, client := range clients {
		expectNoError(client.Shutdown())
	}
}

func message(topic string, tag string, number int) *primitive.Message {
	made := primitive.NewMessage(topic, []byte("body-"+strconv.Itoa(number)))
	made.WithTag(tag).WithKeys([]string{"key-" + strconv.Itoa(number)})
	made.WithProperty("number", strconv.Itoa(number))
	return made
}

func number(got *primitive.MessageExt) int {
	return need(strconv.Atoi(got.GetProperty("number")))
}

// unlessBusy calls again while the broker answers that it is busy, which this client never does.
func unlessBusy[T any](call func() (T, error)) T {
	var value T
	var err error
	await(func() bool {
		value, err = call()
		return err == nil || !strings.HasPrefix(err.Error(), "CODE: 2,")
	}, "a broker that is not busy")
	return need(value, err)
}

func send(sender rocketmq.Producer, messages ...*primitive.Message) *primitive.SendResult {
	result := unlessBusy(func() (*primitive.SendResult, error) {
		return sender.SendSync(context.Background(), messages...)
	})
	expect(result.Status == primitive.SendOK, result)
	return result
}

// inbox keeps what a consumer got.
type inbox struct {
	mutex    sync.Mutex
	messages []*primitive.MessageExt
}

func (i *inbox) take(_ context.Context, some ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.messages = append(i.messages, some...)
	return consumer.ConsumeSuccess, nil
}

func (i *inbox) all() []*primitive.MessageExt {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	return append([]*primitive.MessageExt(nil), i.messages...)
}

// exactly returns all messages, once there are count, and half a second later: none may come twice.
func (i *inbox) exactly(count int) []*primitive.MessageExt {
	await(func() bool { return len(i.all()) >= count }, count, " messages")
	time.Sleep(500 * time.Millisecond)
	got := i.all()
	expect(len(got) == count, len(got), "messages instead of", count)
	return got
}

func numbersOf(messages []*primitive.MessageExt) map[int]bool {
	found := map[int]bool{}
	for _, got := range messages {
		found[number(got)] = true
	}
	return found
}

package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand"
	"strings"
	"sync"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

const unicode = "ä消息🚀"

// sending keeps what a flow sent and what it was answered, each under its name.
type sending struct {
	topic   string
	sent    map[string]*primitive.Message
	results map[string]*primitive.SendResult
}

func (s *sending) message(name string, body []byte) *primitive.Message {
	made := primitive.NewMessage(s.topic, append([]byte(nil), body...))
	made.WithTag("TagA").WithKeys([]string{"key-" + name, unicode})
	made.WithProperty("case", name)
	s.sent[name] = made
	return made
}

func (s *sending) batch(name string) []*primitive.Message {
	var messages []*primitive.Message
	for each := 0; each < 10; each++ {
		messages = append(messages, s.message(fmt.Sprintf("%s#%d", name, each), []byte(fmt.Sprint("body ", each))))
	}
	return messages
}

func (s *sending) asynchronously(sender rocketmq.Producer, name string, messages ...*primitive.Message) {
	type answer struct {
		result *primitive.SendResult
		err    error
	}
	s.results[name] = unlessBusy(func() (*primitive.SendResult, error) {
		answers := make(chan answer, 2) // this client tells an error twice
		expectNoError(sender.SendAsync(context.Background(),
			func(_ context.Context, result *primitive.SendResult, err error) { answers <- answer{result, err} }, messages...))
		first := <-answers
		return first.result, first.err
	})
}

// sends: every way to send, and every kind of plain message.
func sends() facts {
	topic := named("sends")
	var got inbox
	receiver := startConsumer(topic+"-group", topic, everything, got.take)
	sender := startProducer(topic + "-producer")
	s := &sending{topic: topic, sent: map[string]*primitive.Message{}, results: map[string]*primitive.SendResult{}}
	incompressible := make([]byte, 1<<20)
	rand.Read(incompressible)
	body := []byte(unicode)

	for name, body := range map[string][]byte{
		"sync": body, "compressed": []byte(strings.Repeat("five kilobytes ", 350)), "large": incompressible, "zero": {0},
	} {
		s.results[name] = send(sender, s.message(name, body))
	}
	s.asynchronously(sender, "async", s.message("async", body))
	expectNoError(sender.SendOneWay(context.Background(), s.message("oneway", body)))
	s.results["batch"] = send(sender, s.batch("batch")...)
	s.asynchronously(sender, "batch-async", s.batch("batch-async")...)
	expectNoError(sender.SendOneWay(context.Background(), s.batch("batch-oneway")...))
	described := s.message("properties", body)
	for each := 0; each < 100; each++ {
		described.WithProperty(fmt.Sprint("property-", each), strings.Repeat("p", 90))
	}
	s.results["properties"] = send(sender, described)
	flagged := s.message("flagged", body)
	flagged.Flag = 7
	s.results["flagged"] = send(sender, flagged)
	delayed := s.message("delayed", body)
	delayed.WithDelayTimeLevel(2)
	send(sender, delayed)

	places := map[string]bool{}
	for _, message := range got.exactly(len(s.sent)) {
		s.check(message)
		places[fmt.Sprint(message.StoreHost, message.Queue, message.QueueOffset)] = true
	}
	expect(len(places) == len(s.sent), "two messages at one place")
	shutdown(receiver, sender)
	return facts{"messages": len(s.sent)}
}

func (s *sending) check(got *primitive.MessageExt) {
	name := got.GetProperty("case")
	sent := s.sent[name]
	expect(sent != nil, "nobody sent", name)
	expect(bytes.Equal(got.Body, sent.Body), name, "has another body")
	expect(got.Flag == sent.Flag, name, "has another flag")
	for key, value := range sent.GetProperties() {
		if key != primitive.PropertyDelayTimeLevel {
			expect(got.GetProperty(key) == value, name, key, got.GetProperty(key))
		}
	}
	if name == "compressed" {
		expect(int(got.StoreSize) < len(got.Body), "is stored as it was")
	}
	if name == "delayed" {
		expect(got.StoreTimestamp-got.BornTimestamp >= 900, "delayed by", got.StoreTimestamp-got.BornTimestamp, "ms")
	}
	if result := s.results[name]; result != nil {
		expect(result.Status == primitive.SendOK, name, result)
		expect(got.MsgId == result.MsgID && got.OffsetMsgId == result.OffsetMsgID, name, "has another id", got, result)
		expect(got.QueueOffset == result.QueueOffset, name, "is at another place", got, result)
	}
}

// rotation: messages without a wish go to the queues of all brokers in turn; those with a wish go there.
func rotation() facts {
	topic := named("rotation")
	queues := queuesOf(topic)
	sender := startProducer(topic + "-producer")
	chosen := startProducer(topic+"-choosing", producer.WithQueueSelector(producer.NewManualQueueSelector()))
	counts := map[primitive.MessageQueue]int{}
	for each := 0; each < 5*len(queues); each++ {
		counts[*send(sender, message(topic, "TagA", each)).MessageQueue]++
	}
	names := map[string]int{}
	for queue, count := range counts {
		expect(count == 5, queue, count)
		names[queue.BrokerName] += count
	}
	expect(len(counts) == len(queues) && len(names) == len(setup.brokers), counts)
	for _, queue := range queues {
		wanted := message(topic, "TagA", 0)
		wanted.Queue = queue
		result := send(chosen, wanted)
		expect(*result.MessageQueue == *queue, result, "instead of", queue)
	}
	shutdown(sender, chosen)
	return facts{"brokers": names}
}

// fates: the number of a message says what becomes of it: 0 committed, 1 rolled back, 2 and 3 the same when asked.
type fates struct{ asked sync.Map }

func (f *fates) ExecuteLocalTransaction(half *primitive.Message) primitive.LocalTransactionState {
	switch half.GetProperty("fate") {
	case "0":
		return primitive.CommitMessageState
	case "1":
		return primitive.RollbackMessageState
	}
	return primitive.UnknowState
}

func (f *fates) CheckLocalTransaction(half *primitive.MessageExt) primitive.LocalTransactionState {
	f.asked.Store(number(half), true)
	if half.GetProperty("fate") == "2" {
		return primitive.CommitMessageState
	}
	return primitive.RollbackMessageState
}

func transactions() facts {
	topic := named("transactions")
	count := 24
	var got inbox
	receiver := startConsumer(topic+"-group", topic, everything, got.take)
	decided := &fates{}
	sender := need(rocketmq.NewTransactionProducer(decided, producerOptions(topic+"-producer")...))
	expectNoError(sender.Start())
	for each := 0; each < count; each++ {
		half := message(topic, "TagA", each)
		half.WithProperty("fate", fmt.Sprint(each%4))
		result := unlessBusy(func() (*primitive.TransactionSendResult, error) {
			return sender.SendMessageInTransaction(context.Background(), half)
		})
		expect(result.Status == primitive.SendOK, result)
	}
	for _, committed := range got.exactly(count / 2) {
		expect(number(committed)%2 == 0, "not committed:", number(committed))
	}
	for each := 2; each < count; each += 4 {
		await(func() bool {
			_, first := decided.asked.Load(each)
			_, second := decided.asked.Load(each + 1)
			return first && second
		}, "questions about", each, "and the next")
	}
	shutdown(receiver, sender)
	return facts{"committed": count / 2}
}

// requests: the broker hands a reply to a producer that it knows. This client says who it is a second after its start if it
// knows a broker by then, else after 30 s, and a request alone tells it of none: so it sends something first.
func requests() facts {
	topic := named("requests")
	replier := startProducer(topic + "-answers")
	answer := func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, request := range messages {
			if request.GetProperty(primitive.PropertyMessageReplyToClient) == "" {
				continue
			}
			reply, err := consumer.CreateReplyMessage(request, nil)
			if err == nil {
				reply.Body = append([]byte("re: "), request.Body...) // what is given to the call above gets lost in it
				_, err = replier.SendSync(context.Background(), reply)
			}
			if err != nil {
				say("UNANSWERED", string(request.Body), err) // while the broker does not know the asker
			}
		}
		return consumer.ConsumeSuccess, nil
	}
	receiver := startConsumer(topic+"-group", topic, everything, answer)
	sender := startProducer(topic + "-asks")
	send(sender, message(topic, "TagA", 0))
	began := time.Now()
	tries := 0
	await(func() bool {
		tries++
		_, err := sender.Request(context.Background(), 2*time.Second, message(topic, "TagA", 0))
		return err == nil
	}, "the first reply")
	warmUp := time.Since(began)
	count := 16
	for each := 0; each < count; each++ {
		reply := need(sender.Request(context.Background(), 20*time.Second, message(topic, "TagA", each)))
		expect(string(reply.Body) == fmt.Sprintf("re: body-%d", each), each, reply)
	}
	var replies sync.Map // this client hands each reply over twice
	keep := func(_ context.Context, reply *primitive.Message, err error) {
		if err != nil {
			say("FAILED", "request", err)
			return
		}
		replies.Store(string(reply.Body), true)
	}
	for each := count; each < 2*count; each++ {
		expectNoError(sender.RequestAsync(context.Background(), 20*time.Second, keep, message(topic, "TagA", each)))
	}
	for each := count; each < 2*count; each++ {
		await(func() bool {
			_, isThere := replies.Load(fmt.Sprintf("re: body-%d", each))
			return isThere
		}, "asynchronous reply ", each)
	}
	shutdown(receiver, sender, replier)
	return facts{"replies": 2 * count, "tries": tries, "warm_up_ms": warmUp.Milliseconds()}
}

package main

import (
	"context"
	"fmt"
	"strings"
	"sync"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// deadLetters: of three messages one is consumed at once, one when it comes again, one never.
func deadLetters() facts {
	topic := named("dead-letters")
	group := topic + "-group"
	count := 24
	var tries, dead inbox
	handle := func(ctx context.Context, some ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		tries.take(ctx, some...)
		kind := number(some[0]) % 3
		if kind == 2 || kind == 1 && some[0].ReconsumeTimes == 0 {
			return consumer.ConsumeRetryLater, nil
		}
		return consumer.ConsumeSuccess, nil
	}
	tags := consumer.MessageSelector{Type: consumer.TAG, Expression: "TagA || TagB"}
	receiver := startConsumer(group, topic, tags, handle, consumer.WithMaxReconsumeTimes(1))
	sender := startProducer(topic + "-producer")
	for each := 0; each < count; each++ {
		send(sender, message(topic, []string{"TagA", "TagB"}[each%2], each))
	}
	for _, tried := range tries.exactly(count + count*2/3) {
		expect(tried.ReconsumeTimes <= 1, "tried too often")
	}
	reader := startConsumer(named("dead-letter-readers"), "%DLQ%"+group, everything, dead.take)
	for _, letter := range dead.exactly(count / 3) {
		expect(number(letter)%3 == 2, "died of nothing:", number(letter))
		expect(letter.GetProperty(primitive.PropertyRetryTopic) == topic, letter)
	}
	expect(len(numbersOf(dead.all())) == count/3, "one died twice")
	shutdown(receiver, reader, sender)
	return facts{"dead": count / 3}
}

// ordered: eight keys by hash; the first message is put off once. One consumer: of two that start together, one may wait until
// the other's locks end after a minute.
func ordered() facts {
	topic := named("ordered")
	keys, count := 8, 240
	var got inbox
	var once sync.Once
	handle := func(ctx context.Context, some ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		isFirst := false
		once.Do(func() { isFirst = true })
		if isFirst {
			return consumer.SuspendCurrentQueueAMoment, nil
		}
		return got.take(ctx, some...)
	}
	receiver := startConsumer(topic+"-group", topic, everything, handle, consumer.WithConsumerOrder(true))
	sender := startProducer(topic+"-producer", producer.WithQueueSelector(producer.NewHashQueueSelector()))
	for each := 0; each < count; each++ {
		keyed := message(topic, "TagA", each)
		keyed.WithShardingKey(fmt.Sprint("order-", each%keys))
		send(sender, keyed)
	}
	await(func() bool { return len(numbersOf(got.all())) == count }, "every message in order")
	last := map[int]int{}
	for _, message := range got.all() {
		key := number(message) % keys
		before, isThere := last[key]
		expect(!isThere || before < number(message), number(message), "came after", before)
		last[key] = number(message)
	}
	expect(len(got.all()) == count, len(got.all()), "messages instead of", count)
	shutdown(receiver, sender)
	return facts{"messages": count}
}

func broadcast() facts {
	topic := named("broadcast")
	count := 20
	var inboxes [2]inbox
	var consumers []closing
	for each := range inboxes {
		consumers = append(consumers, startConsumer(
			topic+"-group", topic, everything, inboxes[each].take, consumer.WithConsumerModel(consumer.BroadCasting)))
	}
	sender := startProducer(topic + "-producer")
	for each := 0; each < count; each++ {
		send(sender, message(topic, "TagA", each))
	}
	for each := range inboxes {
		expect(len(numbersOf(inboxes[each].exactly(count))) == count, "not every message")
	}
	shutdown(append(consumers, sender)...)
	return facts{"messages": 2 * count}
}

func filters() facts {
	topic := named("filters")
	count := 30
	colours := []string{"red", "grün", "blue"}
	var bySQL, byTag inbox
	sql := consumer.MessageSelector{
		Type: consumer.SQL92, Expression: "number BETWEEN 10 AND 19 AND colour IN ('red', 'grün')",
	}
	tags := consumer.MessageSelector{Type: consumer.TAG, Expression: "TagA||TagC"}
	consumers := []closing{
		startConsumer(topic+"-sql", topic, sql, bySQL.take), startConsumer(topic+"-tag", topic, tags, byTag.take),
	}
	sender := startProducer(topic + "-producer")
	for each := 0; each < count; each++ {
		coloured := message(topic, []string{"TagA", "TagB", "TagC"}[each%3], each)
		coloured.WithProperty("colour", colours[each%3])
		send(sender, coloured)
	}
	found := numbersOf(bySQL.exactly(7))
	for _, each := range []int{10, 12, 13, 15, 16, 18, 19} {
		expect(found[each], "not found:", each)
	}
	for _, got := range byTag.exactly(20) {
		expect(got.GetTags() != "TagB", "not wanted:", got)
	}
	shutdown(append(consumers, sender)...)
	return facts{"bySql": len(found)}
}

// namespace: names of topics and groups with a prefix; the topic is created by the first send.
func namespace() facts {
	topic := named("namespace")
	sender := startProducer(topic+"-producer", producer.WithNamespace("space"))
	result := send(sender, message(topic, "TagA", 1))
	expect(result.MessageQueue.Topic == "space%"+topic, result)
	queuesOf("space%" + topic)
	var got inbox
	receiver := need(rocketmq.NewPushConsumer(consumerOptions(topic+"-group", consumer.WithNamespace("space"))...))
	expectNoError(receiver.Subscribe(topic, everything, got.take))
	expectNoError(receiver.Start())
	got.exactly(1)
	shutdown(sender, receiver)
	return facts{}
}

// trace: sends and their consumption leave records in the trace topic.
func trace() facts {
	topic := named("trace")
	count := 8
	tracing := &primitive.TraceConfig{
		Access: primitive.Local, Resolver: resolver(), GroupName: topic + "-tracing", Credentials: setup.account,
	}
	var got, records inbox
	reader := startConsumer(topic+"-readers", "RMQ_SYS_TRACE_TOPIC", everything, records.take)
	receiver := startConsumer(topic+"-group", topic, everything, got.take, consumer.WithTrace(tracing))
	sender := startProducer(topic+"-producer", producer.WithTrace(tracing))
	var ids []string
	for each := 0; each < count; each++ {
		ids = append(ids, send(sender, message(topic, "TagA", each)).MsgID)
	}
	got.exactly(count)
	for _, id := range ids {
		for _, kind := range []string{"Pub", "SubBefore", "SubAfter"} {
			await(func() bool { return isTraced(records.all(), kind, id) }, kind, " of ", id)
		}
	}
	shutdown(reader, receiver, sender)
	return facts{"traced": count}
}

// isTraced tells whether there is a record of this kind: records end with 0x02, their fields with 0x01.
func isTraced(messages []*primitive.MessageExt, kind string, id string) bool {
	for _, message := range messages {
		for _, record := range strings.Split(string(message.Body), "\x02") {
			fields := strings.Split(record, "\x01")
			if fields[0] == kind && strings.Contains(record, id) {
				return true
			}
		}
	}
	return false
}

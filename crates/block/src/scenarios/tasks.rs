//! Tasks that come during a run, and disks that share a clock.

use iosched_schedulers::BlockPath;

use super::*;

/// What three processes have the device do. The second and third begin later, and are known to the queue from the start
/// or only then.
fn order(scheduler: &str, kernel: &str, late: bool) -> Vec<String> {
    let mut config = config(scheduler, kernel, 1, 8);
    config.tasks = (0..3)
        .map(|n| TaskInfo { pid: 100 + n, nice: [0, 19, -20][n as usize], ..TaskInfo::default() })
        .collect();
    let tasks = config.tasks.clone();
    config.tasks.truncate(if late { 1 } else { 3 });
    let mut rig = Rig::new(config);
    rig.waiting.resize(3, VecDeque::new());
    rig.submits(0, "R1000 R1100 R1200").returns();
    for (n, info) in (1..).zip(&tasks[1..]) {
        rig.to(f64::from(n) * 3.0);
        if late {
            assert_eq!(rig.q.task_started(info.clone()), n);
        }
        rig.submits(n, &format!("R{n}5000 R{n}5100 W{n}7000")).returns();
        assert_eq!(rig.q.facts().pid(n), 100 + n);
    }
    rig.to(4000.0);
    assert_eq!(rig.done.len(), 9);
    rig.sent()
}

#[test]
fn a_task_that_comes_late_is_served_as_if_it_had_been_known() {
    for kernel in ["2.6.18", "3.12", "4.12", "6.12"] {
        let version = KernelProfile::find(kernel).unwrap().kernel_version();
        for descriptor in registry::SCHEDULERS {
            if registry::resolve(descriptor.name, version).is_ok() {
                let known = order(descriptor.name, kernel, false);
                assert_eq!(
                    order(descriptor.name, kernel, true),
                    known,
                    "{kernel} {}",
                    descriptor.name
                );
            }
        }
    }
}

#[test]
fn tasks_and_threads_are_numbered_as_they_come() {
    let mut config = config("cfq", "3.12", 1, 5);
    assert_eq!(config.path, BlockPath::Legacy);
    config.tasks.clear();
    let mut q = Queue::new(config).unwrap();
    let task = |pid| TaskInfo { pid, nice: 5, ..TaskInfo::default() };
    let numbers =
        [q.task_started(task(70)), q.add_thread(), q.add_thread(), q.task_started(task(71))];
    assert_eq!(numbers, [0, 1, 2, 3]);
    assert_eq!([0, 1, 2, 3].map(|n| q.facts().pid(n)), [70, 1, 2, 71]);
    assert_eq!([0, 1, 2, 3].map(|n| q.facts().tasks[n].nice), [5, 0, 0, 5]);
}

#[test]
fn an_event_names_its_disk() {
    let mut tl = Timeline::default();
    let mut disks: Vec<Queue> = (0..2)
        .map(|n| {
            // The device plug of 2.6.18 sets a timer of 3 ms.
            let config = QueueConfig { disk: DiskId(n), ..config("noop", "2.6.18", 1, 5) };
            Queue::new(config).unwrap()
        })
        .collect();
    for n in [1, 0] {
        let bio = Bio {
            id: n,
            op: Op::Read,
            flags: Flags::NONE,
            sector: 800,
            sectors: 8,
            task: 0,
            thread: 0,
            prio: IoPrio::default(),
            cgroup: 0,
            cpu: 0,
        };
        assert_eq!(disks[n as usize].submit(&mut tl, &bio, false), Submit::Taken);
        tl.now += MS;
    }
    let mut timers = Vec::new();
    while let Some((at, event)) = tl.events.pop() {
        let Event::Queue(disk, event) = event else { panic!("{event:?}") };
        tl.now = at;
        let other = &disks[1 - usize::from(disk.0)];
        let before = other.in_flight();
        disks[usize::from(disk.0)].event(&mut tl, event);
        assert_eq!(disks[usize::from(disk.0)].in_flight(), 1);
        assert_eq!(disks[1 - usize::from(disk.0)].in_flight(), before);
        timers.push((at / MS, disk.0));
    }
    assert_eq!(timers, [(3, 1), (4, 0)]);
}

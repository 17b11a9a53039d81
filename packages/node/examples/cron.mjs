// Each time of the task is run by one process: node cron.mjs (npm install node-cron)
import { connect } from 'clave';
import { coordinator } from 'clave/node-cron';
import cron from 'node-cron';

const clave = connect();
const runCoordinator = coordinator(clave, { onLost: (key) => console.error(`${key}: the lock is lost`) });
const task = cron.schedule('* * * * * *', () => console.log('runs here'), { name: 'report', distributed: true, runCoordinator });
setTimeout(async () => {
  await task.destroy();
  await clave.close();
}, 2500);

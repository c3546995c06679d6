from shuffledp.deploy.asked_terms import AskedTerms as AskedTerms
from shuffledp.deploy.client import Client as Client
from shuffledp.deploy.client import Limits as Limits
from shuffledp.deploy.messages import Answer as Answer
from shuffledp.deploy.task import Task as Task
